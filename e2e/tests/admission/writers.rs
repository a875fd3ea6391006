//! A TTL or deadline that a request leaves out, by every program that people write TrainJobs with, at a webhook
//! in either mode (`docs/semantics.md`, A11).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use e2e::binaries::{Binaries, Program};
use serde_json::{Value, json};

use super::parts::plain;
use super::place::{Place, manifest, on};
use super::{Mode, Site};

pub(crate) const DEADLINE: &str = "activeDeadlineSeconds";
pub(crate) const TTL: &str = "ttlSecondsAfterFinished";
pub(crate) const FIELDS: [&str; 2] = [DEADLINE, TTL];

/// What each field is at first.
pub(crate) fn value(field: &str) -> i64 {
    if field == TTL { 3600 } else { 7200 }
}

/// What its author is told of a request that leaves a field out.
pub(crate) fn kept_warning(field: &str, mode: Mode) -> String {
    let advice = match mode {
        Mode::Immutable => {
            "it cannot be removed after creation. A client that drops it is older than the field"
                .to_owned()
        }
        Mode::Mutable => {
            format!(
                "to remove it, add lifecycle.trainjob.dev/remove-fields: {field} to its annotations"
            )
        }
    };
    format!("spec.{field} stays {}, which the request lacks: {advice}", value(field))
}

/// A suspended job with both fields.
pub(crate) fn full() -> Value {
    on("r", &json!({"suspend": true, TTL: value(TTL), DEADLINE: value(DEADLINE)}))
}

/// A job that has been resumed, without some fields.
pub(crate) fn resumed_without(fields: &[&str]) -> Value {
    let mut spec = full();
    spec["suspend"] = false.into();
    for field in fields {
        spec.as_object_mut().and_then(|spec| spec.remove(*field));
    }
    spec
}

/// How somebody leaves a field out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    KubectlReplace,
    ClientSideApply,
    ApplyOfOwner,
    ApplyOfAnother,
    JsonPatch,
    MergePatch,
}

impl Writer {
    const ALL: [Self; 6] = [
        Self::KubectlReplace,
        Self::ClientSideApply,
        Self::ApplyOfOwner,
        Self::ApplyOfAnother,
        Self::JsonPatch,
        Self::MergePatch,
    ];

    fn creates(self) -> Vec<String> {
        words(match self {
            Self::KubectlReplace | Self::JsonPatch | Self::MergePatch => "create -f -",
            Self::ClientSideApply => "apply -f -",
            Self::ApplyOfOwner | Self::ApplyOfAnother => {
                "apply --server-side --field-manager=owner -f -"
            }
        })
    }

    fn leaves_out(self, name: &str, field: &str) -> Vec<String> {
        let patch = |kind: &str, patch: Value| {
            let mut patched = words(&format!("patch trainjob {name} --type={kind} --patch"));
            patched.push(patch.to_string());
            patched
        };
        match self {
            Self::KubectlReplace => words("replace -f -"),
            Self::ClientSideApply | Self::ApplyOfOwner => self.creates(),
            Self::ApplyOfAnother => {
                words("apply --server-side --force-conflicts --field-manager=another -f -")
            }
            Self::JsonPatch => {
                patch("json", json!([{"op": "remove", "path": format!("/spec/{field}")}]))
            }
            Self::MergePatch => patch("merge", json!({"spec": {"suspend": false, field: null}})),
        }
    }

    /// Whether the request is one that the field is missing in, and does not say why.
    const fn is_warned(self) -> bool {
        !matches!(self, Self::ApplyOfOwner | Self::ApplyOfAnother)
    }
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// What a program said, and whether it was content.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) is_content: bool,
    pub(crate) text: String,
}

/// Programs in the namespace of a test.
pub(crate) struct Terminal {
    kubectl: PathBuf,
    kubeconfig: String,
    place: Place,
}

impl Terminal {
    async fn open(mode: Mode, prefix: &str) -> Result<Self> {
        let site = mode.site().await?;
        let place = Arc::clone(&site).place(prefix).await?;
        place.make_runtime("r", &plain()).await?;
        Ok(Self::at(&site, place))
    }

    /// In this namespace of this box.
    pub(crate) fn at(site: &Site, place: Place) -> Self {
        let kubeconfig = site.cluster.kubeconfig().display().to_string();
        Self { kubectl: site.cluster.kubectl().to_owned(), kubeconfig, place }
    }

    pub(crate) async fn kubectl(&self, arguments: &[String], input: &Value) -> Result<Said> {
        let common = ["--kubeconfig", &self.kubeconfig, "--namespace", &self.place.namespace];
        let common = common.map(str::to_owned);
        run(&self.kubectl, &[&common[..], arguments].concat(), input.to_string()).await
    }

    pub(crate) async fn spec(&self, name: &str) -> Result<Value> {
        Ok(self.place.read(name).await?.object["spec"].clone())
    }
}

async fn run(program: &Path, arguments: &[String], input: String) -> Result<Said> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // Not every program reads it.
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output()
    });
    let output = output.await?.with_context(|| format!("cannot run {}", program.display()))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(Said { is_content: output.status.success(), text })
}

#[tokio::test]
async fn every_kind_of_writer_keeps_what_it_leaves_out() -> Result<()> {
    for mode in Mode::ALL {
        let terminal = Terminal::open(mode, "writers").await?;
        for writer in Writer::ALL {
            for (number, field) in FIELDS.into_iter().enumerate() {
                let name = format!("{writer:?}{number}").to_lowercase();
                let write = leave_out(&terminal, mode, writer, &name, field);
                write.await.with_context(|| format!("{mode:?}, {writer:?}, {field}"))?;
            }
        }
    }
    Ok(())
}

/// One writer makes a job with both fields, and then leaves one out.
async fn leave_out(
    terminal: &Terminal,
    mode: Mode,
    writer: Writer,
    name: &str,
    field: &str,
) -> Result<()> {
    let created = terminal.kubectl(&writer.creates(), &manifest(name, &full())).await?;
    ensure!(created.is_content, "{created:?}");
    let input = manifest(name, &resumed_without(&[field]));
    let said = terminal.kubectl(&writer.leaves_out(name, field), &input).await?;
    let gives_up = writer == Writer::ApplyOfOwner;
    let is_refused = gives_up && mode == Mode::Immutable;
    ensure!(said.is_content != is_refused, "{said:?}");
    let refusal = format!(
        "spec.{field}: Forbidden: field is immutable: keep {}, or create another TrainJob",
        value(field)
    );
    ensure!(said.text.contains(&refusal) == is_refused, "{said:?}");
    let warning = format!("Warning: {}\n", kept_warning(field, mode));
    ensure!(said.text.contains(&warning) == writer.is_warned(), "{said:?}");
    ensure!(said.text.contains("Warning: spec.") == writer.is_warned(), "{said:?}");

    let is_removed = gives_up && !is_refused;
    let changes_only_that = writer == Writer::JsonPatch;
    let mut expected = if is_removed { resumed_without(&[field]) } else { full() };
    expected["suspend"] = (is_refused || changes_only_that).into();
    let spec = terminal.spec(name).await?;
    for known in [DEADLINE, TTL, "suspend"] {
        ensure!(spec[known] == expected[known], "{spec}");
    }
    Ok(())
}

#[tokio::test]
async fn a_client_with_older_types_loses_nothing() -> Result<()> {
    let client = || Binaries::provide(&[Program::OldClient]);
    let client = tokio::task::spawn_blocking(client).await??;
    for mode in Mode::ALL {
        let terminal = Terminal::open(mode, "old-client").await?;
        let made = terminal.kubectl(&words("create -f -"), &manifest("job", &full())).await?;
        ensure!(made.is_content, "{made:?}");
        // Once it changes the spec, and once it does not mean to.
        for arguments in ["-suspend=false -label=a=b", "-label=c=d"] {
            let place = format!(
                "-kubeconfig={} -namespace={} {arguments} job",
                terminal.kubeconfig, terminal.place.namespace
            );
            let program = client.path(Program::OldClient);
            let said = run(program, &words(&place), String::new()).await?;
            ensure!(said.is_content, "{mode:?}: {said:?}");
            for field in FIELDS {
                let warning = format!("Warning: {}\n", kept_warning(field, mode));
                ensure!(said.text.contains(&warning), "{mode:?}: {said:?}");
            }
            let spec = terminal.spec("job").await?;
            ensure!(spec["suspend"] == false, "{spec}");
            ensure!(FIELDS.iter().all(|field| spec[*field] == value(field)), "{spec}");
        }
        let job = terminal.place.read("job").await?.object;
        ensure!(job["metadata"]["labels"] == json!({"a": "b", "c": "d"}), "{job}");
    }
    Ok(())
}
