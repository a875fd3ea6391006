//! What a machine must have for a real node to run on it.

use std::env;
use std::fs;

use rustix::process::geteuid;

/// Programs that are part of Debian, or of what it takes to build this.
const PROGRAMS: [&str; 10] = [
    "apt-get", "chroot", "dpkg-deb", "find", "ip", "mount", "nsenter", "setpriv", "tar", "unshare",
];

/// The controllers that the kubelet asks for.
const CONTROLLERS: [&str; 5] = ["cpu", "cpuset", "devices", "memory", "pids"];

/// Why no real node can run here, and what would help; `None` if one can.
#[must_use]
pub fn missing() -> Option<String> {
    if !geteuid().is_root() {
        return Some("a real node needs root".to_owned());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let places: Vec<_> = env::split_paths(&path).collect();
    let is_there = |program: &&str| places.iter().any(|place| place.join(program).is_file());
    if let Some(program) = PROGRAMS.iter().find(|program| !is_there(program)) {
        let packages = "apt, coreutils, dpkg, findutils, iproute2, mount, tar and util-linux";
        return Some(format!("a real node needs {program}, of Debian's packages {packages}"));
    }
    let hierarchies = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let absent = CONTROLLERS.iter().find(|controller| !has_hierarchy(&hierarchies, controller));
    absent.map(|controller| {
        format!(
            "a real node needs the controller {controller} in a hierarchy of cgroup v1: boot with \
             systemd.unified_cgroup_hierarchy=0"
        )
    })
}

/// Whether a controller is in a hierarchy of version 1, by what `/proc/self/cgroup` says.
fn has_hierarchy(hierarchies: &str, controller: &str) -> bool {
    let controllers = hierarchies.lines().filter_map(|line| line.split(':').nth(1));
    controllers.flat_map(|list| list.split(',')).any(|it| it == controller)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_found_alone_and_beside_others_and_not_in_version_2() {
        let hierarchies = "4:memory:/a\n3:cpu,cpuacct:/\n1:name=systemd:/\n0::/b\n";
        for (controller, expected) in
            [("memory", true), ("cpu", true), ("cpuacct", true), ("pids", false)]
        {
            assert_eq!(has_hierarchy(hierarchies, controller), expected, "{controller}");
        }
        assert!(!has_hierarchy("0::/user.slice\n", "memory"));
    }
}
