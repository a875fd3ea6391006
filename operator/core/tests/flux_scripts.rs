//! The scripts of a Flux instance, run by bash with a `flux` that only pretends.
//!
//! What they say of places in a container is moved into a directory of the test's own.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail loudly")]

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};

/// Becomes the command it is to run; a broker without one ends as the test says.
const FLUX: &str = r#"#!/bin/bash
command=$1
shift
case $command in
    R) echo "$@" ;;
    broker) echo "broker $*" ;;
    start)
        while [[ ${1:-} == -o* ]]; do shift; done
        [ $# -gt 0 ] || exit "$BROKER_STATUS"
        exec "$@"
        ;;
    run)
        while [[ $1 == -* ]]; do shift 2; done
        exec "$@"
        ;;
esac
"#;

const SETTINGS: &str = "hosts='tj-node-0-[0-1]'\nlead='tj-node-0-0'\nlead_address='127.0.0.1'\n\
                        run_flags=(-N 2 -n 4)\nresources=(--cores=0-1)\n";

#[test]
fn the_status_of_the_first_pod_is_the_command_s() {
    let root = installed("status");
    for status in [0, 1, 7, 255] {
        let output = run(&root, "tj-node-0-0", &["bash", "-c", &format!("exit {status}")]);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
    }
}

#[test]
fn the_command_gets_its_arguments_as_they_were_given() {
    let root = installed("arguments");
    let command = ["printf", "<%s>", "a b", "", "$HOME", "*", "'", "\"", "-n"];
    let output = run(&root, "tj-node-0-0", &command);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "<a b><><$HOME><*><'><\"><-n>");
}

#[test]
fn without_a_command_there_is_an_instance_to_work_in() {
    let output = run(&installed("interactive"), "tj-node-0-0", &[]);
    assert!(output.stdout.starts_with(b"broker --config-path="), "{output:?}");
}

#[test]
fn a_certificate_is_nobody_else_s_to_read() {
    let root = installed("certificate");
    assert!(run(&root, "tj-node-0-0", &["true"]).status.success());
    let certificate = root.join("mnt/flux/config/etc/curve/curve.cert");
    assert_eq!(fs::metadata(&certificate).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(certificate).unwrap(), "secret");
}

#[test]
fn a_restarted_container_starts_anew() {
    let root = installed("restart");
    let left = root.join("mnt/flux/config/var/lib/flux/content.sqlite");
    fs::write(&left, "").unwrap();
    for _ in 0..2 {
        assert!(run(&root, "tj-node-0-0", &["true"]).status.success());
    }
    assert!(!left.exists());
}

#[test]
fn another_pod_ends_well_with_its_broker() {
    let root = installed("follower");
    let lead = TcpListener::bind("127.0.0.1:0").unwrap();
    let output = follow(&root, &lead, 0).output().expect("bash");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn another_pod_ends_well_when_the_lead_broker_is_gone_for_good() {
    let root = installed("orphan");
    let lead = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut follower = follow(&root, &lead, 1);
    let follower = thread::spawn(move || follower.output().expect("bash"));
    lead.accept().unwrap();
    drop(lead);
    let output = follower.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8(output.stderr).unwrap().contains("The lead broker 127.0.0.1 is gone")
    );
}

/// The entry point of another Pod than the first, with the lead where the test has it and little patience.
fn follow(root: &Path, lead: &TcpListener, broker_status: i32) -> Command {
    let mut bash = script(root, "entrypoint.sh");
    let moved = root.join("entrypoint.sh");
    let port = lead.local_addr().unwrap().port();
    let text = fs::read_to_string(&moved).unwrap();
    let text = text.replace("/8050", &format!("/{port}"));
    fs::write(moved, text.replace("pause 15", "pause 0.1").replace("-ge 40", "-ge 3")).unwrap();
    bash.arg("true").env("HOSTNAME", "tj-node-0-1").env("BROKER_STATUS", broker_status.to_string());
    bash
}

/// A directory with what is in a Pod after `init.sh`.
fn installed(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flux").join(name);
    let _ = fs::remove_dir_all(&root);
    let view = root.join("opt/views/._view/anything");
    for directory in ["mnt/flux", "etc/flux-config", "curve", "opt/software"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::create_dir_all(view.join("bin")).unwrap();
    fs::create_dir_all(view.join("lib/python3.11")).unwrap();
    for (path, text) in [
        (root.join("etc/flux-config/hostlist"), "tj-node-0-[0-1]\n"),
        (root.join("etc/flux-config/broker.toml"), ""),
        (root.join("etc/flux-config/settings.sh"), SETTINGS),
        (root.join("curve/curve.cert"), "secret"),
        (view.join("bin/flux"), FLUX),
        (view.join("bin/python3.11"), ""),
    ] {
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink("/no/such/python", view.join("bin/python3")).unwrap();

    let output = script(&root, "init.sh").output().expect("bash");
    assert!(output.status.success(), "{output:?}");
    assert!(root.join("mnt/flux/flux-operator-done.txt").exists());
    root
}

/// Runs the entry point as the container of this host would.
fn run(root: &Path, host: &str, command: &[&str]) -> Output {
    script(root, "entrypoint.sh").args(command).env("HOSTNAME", host).output().expect("bash")
}

/// The script, with its places moved below `root`.
fn script(root: &Path, name: &str) -> Command {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/framework/flux").join(name);
    let mut text = fs::read_to_string(source).unwrap();
    for place in ["/mnt/flux", "/etc/flux-config", "/opt/views", "/opt/software"] {
        text = text.replace(place, &format!("{}{place}", root.display()));
    }
    text = text.replace("cat /curve", &format!("cat {}/curve", root.display()));
    let moved = root.join(name);
    fs::write(&moved, text).unwrap();
    let mut bash = Command::new("bash");
    bash.arg(moved);
    bash
}
