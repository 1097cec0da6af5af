#!/bin/bash
# The oracle solution: looks up the answer of the current step.
set -euo pipefail
task="${EIRKIT_TASK:-/task}"
answers="$(dirname -- "$0")/answers.txt"
t=$((10#$(sed -n 's/^STEP \([0-9]*\) .*/\1/p' "$task/step.md" | tail -n 1)))
echo "ANSWER $t $(sed -n "${t}p" "$answers")" > "$task/answer.txt"
