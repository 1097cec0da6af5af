#!/bin/bash
# Before each step: removes everything the agent could have left for itself, then writes what it may see.
set -euo pipefail
key=@KEY@
url="${EIRKIT_EPISODE_URL:?where is the episode?}"
task="${EIRKIT_TASK:-/task}"
me="$(id -u)"
if [ "$me" -eq 0 ] && [ -z "${EIRKIT_ROOTS:-}" ]; then
    echo "the agent must not be root; keep [agent] user in task.toml" >&2
    exit 1
fi
rm -f -- "$0" || true
ask() { curl -sS --fail --max-time 60 --noproxy '*' --data-binary "$2" "$url/$1"; }

# The service records when the first step was set up: later changes were made by the agent. Only root can set a file's
# change time, and the agent is not root.
began="$(ask began "$key")"
if [ "$me" -ne 0 ]; then
    booted="$(awk -v now="$(date +%s.%N)" '{ printf "%.3f", now - $1 }' /proc/uptime)"
    ticks="$(getconf CLK_TCK)"
    for process in $(ps -o pid= -u "$me"); do
        [ "$process" -ne $$ ] && [ "$process" -ne "$PPID" ] || continue
        # The name of a process stands in brackets and may hold anything; its start is the 20th field behind them.
        started="$(awk -v booted="$booted" -v ticks="$ticks" \
            '{ sub(/.*\) /, ""); printf "%.3f", booted + $20 / ticks }' "/proc/$process/stat" 2> /dev/null || echo 0)"
        if awk -v started="$started" -v began="$began" 'BEGIN { exit !(started > began) }'; then
            kill -9 "$process" 2> /dev/null || true
        fi
    done
fi
for root in ${EIRKIT_ROOTS:-/ /dev/shm /run /tmp /var/tmp}; do
    find "$root" -xdev -depth -user "$me" -newerct "@$began" ! -type d -delete 2> /dev/null || true
    find "$root" -xdev -depth -mindepth 1 -type d -user "$me" -newerct "@$began" -empty -delete 2> /dev/null || true
done
mkdir -p "$task"
ask open "$key" > "$task/step.md"
