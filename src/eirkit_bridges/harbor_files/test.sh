#!/bin/bash
# Copies the score that the service wrote. No score means an infrastructure failure, not a score of zero.
set -euo pipefail
reward="${EIRKIT_REWARD:-/episode/reward.json}"
logs="${EIRKIT_VERIFIER_LOGS:-/logs/verifier}"
if ! grep -q '^{"reward": [01]' "$reward"; then
    echo "the episode left no score in $reward" >&2
    exit 1
fi
mkdir -p "$logs"
cp -- "$reward" "$logs/reward.json"
