//! What `--help` says: a manual page, of which `-h` is the synopsis.

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::args::Args;
use crate::program::{Entries, Manual, OwnFlag, Program};

const FILES: Entries = &[
    ("FILE of --config", "settings, in YAML; read once and strictly"),
    ("FILE of --kubeconfig", "the API server and who to be there"),
    ("~/.kube/config", "the same, where neither --kubeconfig nor KUBECONFIG is given"),
    (
        "/var/run/secrets/kubernetes.io/serviceaccount/",
        "token, authority and namespace of a Pod, without a kubeconfig",
    ),
];

const ENVIRONMENT: Entries = &[
    ("KUBECONFIG", "kubeconfig files, separated by colons; --kubeconfig goes first"),
    ("KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT", "where a Pod finds the API server"),
    (
        "POD_NAMESPACE",
        "the namespace of this process; without it, that of the service\n\
         account or of the kubeconfig's context",
    ),
];

const EXIT: Entries = &[
    ("0", "it was asked to stop and has; or --help, --version"),
    ("1", "anything else; the last line of stderr says what:"),
    ("", "a flag or the configuration is wrong,"),
    ("", "an address cannot be listened on,"),
];

const OUTPUT: Entries = &[
    ("stderr", "the log, one line for each event; errors before it begins"),
    ("stdout", "--help and --version"),
];

const SEE_ALSO: Entries = &[
    ("docs/configuration.md", "every setting"),
    ("docs/troubleshooting.md", "when something is wrong"),
    ("docs/semantics.md", "what deadline and TTL mean, exactly"),
    ("charts/trainjob-operator", "an installation"),
];

/// The command line of `program`.
pub(super) fn command(program: Program) -> Command {
    Args::command()
        .name(program.name)
        .about(program.about)
        .long_about(format!("{}\n\n{}", program.about, program.manual.description))
        .after_help("--help says more: files, environment, signals, exit status.")
        .after_long_help(sections(program))
        .args(program.flags.iter().map(own_flag))
}

fn own_flag(flag: &OwnFlag) -> Arg {
    let arg = Arg::new(flag.name).long(flag.name).help(flag.help);
    match flag.value {
        Some(value) => arg.value_name(value).action(ArgAction::Set),
        None => arg.action(ArgAction::SetTrue),
    }
}

fn sections(program: Program) -> String {
    let Manual { servers, files, environment, stopping, failures, .. } = program.manual;
    let signals =
        [("SIGTERM, SIGINT", stopping), ("a second one", "ends it at once, with exit status 1")];
    [
        section("Servers", &[servers]),
        section("Files", &[FILES, files]),
        section("Environment", &[ENVIRONMENT, environment]),
        section("Signals", &[&signals]),
        section("Exit status", &[EXIT, failures]),
        section("Output", &[OUTPUT]),
        format!(
            "Examples:\n  {0} --kubeconfig ~/.kube/config --log-format text\n  \
                 {0} --config /etc/trainjob-operator/config.yaml --log-level debug\n",
            program.name
        ),
        section("See also", &[SEE_ALSO]),
    ]
    .join("\n")
}

/// A heading, and below it two columns.
fn section(heading: &str, entries: &[&[(&str, &str)]]) -> String {
    let mut lines = vec![format!("{heading}:")];
    for (name, said) in entries.iter().flat_map(|entries| entries.iter()) {
        let mut name = *name;
        // What is longer has a line of its own.
        if name.len() > 29 {
            lines.push(format!("  {name}"));
            name = "";
        }
        for line in said.lines() {
            lines.push(format!("  {name:<30}  {line}"));
            name = "";
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const PROGRAM: Program = Program {
        name: "a-program",
        about: "It works.",
        metrics: "a_program",
        kinds: &[],
        threads: None,
        flags: &[],
        manual: Manual {
            description: "It works well.",
            servers: &[("work", ":1")],
            files: &[("FILE", "its file")],
            environment: &[("VARIABLE", "one line\nand another")],
            stopping: "it stops",
            failures: &[("", "it fails")],
        },
    };

    fn arguments() -> BTreeSet<String> {
        let mut command = command(PROGRAM);
        command.build();
        command.get_arguments().filter_map(|it| it.get_long()).map(str::to_owned).collect()
    }

    /// The long flags that begin a line of `text`, behind `mark`.
    fn begun(text: &str, mark: &str) -> BTreeSet<String> {
        let flags = text.lines().filter_map(|line| {
            let line = line.trim_start().trim_start_matches("-h, ").trim_start_matches("-V, ");
            let flag = line.strip_prefix(mark)?.strip_prefix("--")?;
            let name = flag.split(|c: char| !c.is_ascii_lowercase() && c != '-').next()?;
            Some(name.to_owned())
        });
        flags.collect()
    }

    #[test]
    fn help_has_every_flag_with_its_default_and_no_other() {
        let help = command(PROGRAM).render_long_help().to_string();
        let options = help.split_once("\nServers:").unwrap().0;
        assert_eq!(begun(options, ""), arguments());
        for argument in command(PROGRAM).get_arguments() {
            let said = argument.get_help().unwrap().to_string();
            assert!(said.contains(" [default: "), "{argument}: {said}");
        }
    }

    #[test]
    fn the_page_of_settings_has_every_flag_and_no_other() {
        let page = include_str!("../../../../docs/configuration.md");
        let table = page.split_once("\n## Flags\n").unwrap().1.split("\n## ").next().unwrap();
        let cells = table.lines().filter_map(|line| line.split('|').nth(1));
        let flags: Vec<_> = cells
            .flat_map(|cell| cell.split(", "))
            .map(|flag| flag.trim().to_owned() + " ")
            .collect();
        let documented = flags.join("\n");
        let general = ["help", "version"].map(str::to_owned);
        let expected: BTreeSet<_> = arguments().difference(&general.into()).cloned().collect();
        assert_eq!(begun(&documented, "`"), expected);
    }

    #[test]
    fn a_section_has_two_columns() {
        let long = "x".repeat(30);
        let entries: &[(&str, &str)] = &[("a", "b\nc"), (&long, "d")];
        let indent = " ".repeat(34);
        let expected = format!("Words:\n  a{:31}b\n{indent}c\n  {long}\n{indent}d\n", "");
        assert_eq!(section("Words", &[entries]), expected);
    }

    #[test]
    fn help_fits_on_a_terminal() {
        for text in [command(PROGRAM).render_help(), command(PROGRAM).render_long_help()] {
            for line in text.to_string().lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
        }
    }
}
