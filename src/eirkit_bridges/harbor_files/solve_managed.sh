#!/bin/bash
# The oracle solution: reveals each step and submits its answer.
set -euo pipefail
url="${EIRKIT_EPISODE_URL:?where is the episode?}"
answers="$(dirname -- "$0")/answers.txt"
act() { curl -sS --fail --max-time 60 --noproxy '*' --data-binary "$1" "$url/act"; }
t=0
while read -r values; do
    t=$((t + 1))
    act NEXT
    act "ANSWER $t $values"
done < "$answers"
act DONE
