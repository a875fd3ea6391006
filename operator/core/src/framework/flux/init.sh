#!/bin/bash
# Runs once in every Pod, in the image that has Flux: puts Flux and its configuration where the
# container "node", which has neither, finds them.
set -eu

config=/mnt/flux/config
mkdir -p "$config/etc/flux/system/cron.d" "$config/etc/flux/config" "$config/var/lib/flux" \
    "$config/run/flux" "$config/etc/curve"
cp /etc/flux-config/hostlist "$config/etc/flux/system/hostlist"
cp /etc/flux-config/broker.toml "$config/etc/flux/config/broker.toml"

# The view is a single directory, whatever its name, of links into /opt/software.
views=(/opt/views/._view/*/)
mkdir -p /mnt/flux/view /mnt/flux/software
cp -RPf "${views[0]}." /mnt/flux/view/
cp -RPf /opt/software/. /mnt/flux/software/

# The container "node" may run as another user than this one.
chmod -R a+rwX "$config"
chmod a+rwx /mnt/flux/view/bin

touch /mnt/flux/flux-operator-done.txt
