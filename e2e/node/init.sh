#!/bin/sh
# Process 1 of the namespaces of a real node. It makes them look like a machine of its own, tells that by making
# WORK/ready, and reaps what the node leaves behind. When it ends, everything in the namespaces does.
#
#   init.sh WORK PACKAGES ADDRESS
#
# WORK      a folder for what the node writes
# PACKAGES  a folder in which the packages of the node are unpacked
# ADDRESS   the address of the node and the length of its prefix
set -eu
work=$1 packages=$2 address=$3

hostname real

# The packages of the node, as if they were installed.
mount -t overlay -o "ro,lowerdir=$packages/usr:/usr" packages /usr

# The groups that this process was put in are the roots of their hierarchies here.
groups=$(cut -d: -f2 /proc/self/cgroup)
umount -l /sys/fs/cgroup
mount -t sysfs -o ro sysfs /sys
mount -t tmpfs tmpfs /sys/fs/cgroup
for controllers in $groups; do
    folder=/sys/fs/cgroup/${controllers#name=}
    mkdir "$folder"
    case $controllers in
        name=*) mount -t cgroup -o "none,$controllers" cgroup "$folder" ;;
        *) mount -t cgroup -o "$controllers" cgroup "$folder" ;;
    esac
    # Controllers that share a hierarchy are looked for by the name of each.
    case $controllers in
        *,*) for controller in $(echo "$controllers" | tr , ' '); do ln -s "$controllers" "/sys/fs/cgroup/$controller"; done ;;
    esac
done

mount -t tmpfs tmpfs /run
mkdir -p "$work/log" "$work/lib" "$work/lib.work"
mount --bind "$work/log" /var/log
mount -t overlay -o "lowerdir=/var/lib,upperdir=$work/lib,workdir=$work/lib.work" lib /var/lib

# The kubelet sets what the whole machine shares. Here it sets files.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file=$work/$(basename "${setting%=*}")
    echo "${setting#*=}" >"$file"
    mount --bind "$file" "/proc/sys/${setting%=*}"
done

# Volumes that are mounted later are seen in containers.
mount --make-rshared /

ip link set lo up
ip link add node0 type bridge
ip address add "$address" dev node0
ip link set node0 up
echo 1 >/proc/sys/net/ipv4/ip_forward

: >"$work/ready"
# Waiting reaps every child, also those that are here only because their parent has ended.
sleep infinity &
wait
