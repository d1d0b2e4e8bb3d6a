#!/bin/bash
# mpi.sh: four processes on this machine, by Open MPI or MPICH, started again up to three times.

PHALANX_TOKEN=$(python3 -c 'import secrets; print(secrets.token_hex(16))') # a new one for each run
export PHALANX_TOKEN

for _ in 0 1 2 3; do
    mpirun -n 4 python train.py "$HOME/runs/a" && exit 0
done
exit 1
