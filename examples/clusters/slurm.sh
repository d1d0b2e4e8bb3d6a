#!/bin/bash
# sbatch slurm.sh: two machines with four processes each. Where Slurm takes them away, a machine fails,
# or the time is up, the job waits in the queue again, and goes on from its newest checkpoint.
#SBATCH --job-name=train
#SBATCH --nodes=2 --ntasks-per-node=4
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@120
#SBATCH --open-mode=append

# Who else uses the cluster knows the name of the job and the port that follows from it, but not this.
PHALANX_TOKEN=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
export PHALANX_TOKEN

srun python train.py "$HOME/runs/a"
status=$?
if [ "$status" = 75 ] || { [ "$status" != 0 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 5 ]; }; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
