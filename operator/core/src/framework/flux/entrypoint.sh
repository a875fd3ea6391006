#!/bin/bash
# Runs in the container "node" of every Pod: makes the Pod a broker of one Flux instance, and on the
# first Pod runs the user's command in it. The command is this script's arguments, each as it was given.
#
# The first Pod's exit status is the command's.

# hosts, lead, lead_address, run_flags and resources come from settings.sh.
# shellcheck disable=SC2154
set -eu

view=/mnt/flux/view
config=/mnt/flux/config
uri=local://$config/run/flux/local
# shellcheck source=/dev/null
. /etc/flux-config/settings.sh

# Flux itself. What the container has goes first, so that the user's programs stay the user's.
if [ ! -e /opt/software/.copied ]; then
    cp -RPf /mnt/flux/software/. /opt/software/
    touch /opt/software/.copied
fi
export PATH="$PATH:$view/bin"
export FLUX_RC_EXTRA="$view/etc/flux/rc1.d"
for lib in "$view"/lib/python3.*; do
    python="$view/bin/${lib##*/}"
    if [ -x "$python" ]; then
        # The links of the view name a place in the image it was built in.
        ln -sfn "$python" "$view/bin/python3"
        ln -sfn "$python" "$view/bin/python"
        export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$lib/site-packages"
        break
    fi
done

# What a person needs in a shell of this container.
{
    echo '#!/bin/bash'
    echo '# Source this to use the Flux instance that runs here.'
    printf 'export PATH=%q\n' "$PATH"
    printf 'export PYTHONPATH=%q\n' "${PYTHONPATH:-}"
    printf 'export FLUX_RC_EXTRA=%q\n' "$FLUX_RC_EXTRA"
    printf 'export FLUX_URI=%q\n' "$uri"
} >/mnt/flux/flux-view.sh
cat >/mnt/flux/load-fluxion.sh <<'END'
#!/bin/bash
# Puts the Fluxion scheduler in the place of the simple one.
. /mnt/flux/flux-view.sh
flux module remove sched-simple
flux module load sched-fluxion-resource
flux module load sched-fluxion-qmanager
END
chmod a+rx /mnt/flux/flux-view.sh /mnt/flux/load-fluxion.sh

# A container that was restarted starts anew: what its predecessor left is of no use to it.
rm -rf "$config"/run/flux/* "$config"/var/lib/flux/*

# Flux takes a certificate only from a file that is the user's own and nobody else's to read.
certificate=$config/etc/curve/curve.cert
rm -f "$certificate"
(umask 077 && cat /curve/curve.cert >"$certificate")
chown "$(id -u)" "$certificate"

flux R encode --hosts="$hosts" "${resources[@]}" >"$config/etc/flux/system/R"

options=(
    "--config-path=$config/etc/flux/config"
    "-Scron.directory=$config/etc/flux/system/cron.d"
    -Stbon.fanout=256
    "-Srundir=$config/run/flux"
    "-Sstatedir=$config/var/lib/flux"
    "-Slocal-uri=$uri"
    -Slog-stderr-level=0
    -Slog-stderr-mode=local
)
# The same, as flux start hands them to the broker that it becomes.
start=(flux start "${options[@]/#/-o}")

if [ "${HOSTNAME%%.*}" = "$lead" ]; then
    if [ $# -eq 0 ]; then
        # Nothing to run: an instance to work in, until it is stopped.
        exec flux broker "${options[@]}" -Sbroker.rc2_none=1
    fi
    exec "${start[@]}" flux run "${run_flags[@]}" "$@"
fi

# Another Pod: a broker that follows the first Pod's and ends with it.
broker=
met=no

stop() {
    trap '' TERM INT
    if [ -n "$broker" ]; then
        kill -TERM "$broker" || true
        wait "$broker" || true
    fi
    exit 143
}
trap stop TERM INT

pause() {
    sleep "$1" &
    wait $! || true
}

# Waits for the lead broker: for ever until it has been there once, then for ten minutes, which is
# longer than the kubelet takes to restart a container. After that it is gone for good, and this Pod has
# done its part: how the job has ended is for the exit status of the first Pod to say.
await_lead() {
    local tries=0
    # shellcheck disable=SC2016
    until timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/8050"' "$lead_address" 2>/dev/null; do
        tries=$((tries + 1))
        if [ "$met" = yes ] && [ "$tries" -ge 40 ]; then
            echo "The lead broker $lead_address is gone." >&2
            exit 0
        fi
        pause 15
    done
    met=yes
}

while true; do
    await_lead
    "${start[@]}" &
    broker=$!
    status=0
    wait "$broker" || status=$?
    broker=
    if [ "$status" -eq 0 ]; then
        exit 0
    fi
    echo "The broker ended with status $status; looking for the lead broker again." >&2
    pause 15
done
