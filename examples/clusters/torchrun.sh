#!/bin/bash
# torchrun.sh FIRST-HOST: run it on each of two to four machines, with PHALANX_TOKEN set to one secret
# on all. When a machine is lost, torchrun starts the processes again on those that are left, and
# takes in those that come.
: "${PHALANX_TOKEN:?set it to one secret on all machines}"

exec torchrun --nnodes 2:4 --nproc-per-node 4 --max-restarts 10 \
    --rdzv-backend c10d --rdzv-endpoint "$1:29400" --rdzv-id train \
    train.py "$HOME/runs/a"
