//! A page of the documentation, followed to the letter: what it tells to type is what is run.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use crate::testenv::workspace;

/// A page, and the desk of somebody who follows it.
pub(super) struct Guide {
    blocks: Vec<Block>,
    followed: Mutex<BTreeSet<String>>,
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// Something between two fences.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    heading: String,
    language: String,
    text: String,
}

impl Guide {
    /// Opens `page` of this repository. Its commands run in `folder` and find there what they write.
    pub(super) fn open(page: &str, folder: &Path) -> Result<Self> {
        let blocks = blocks(&workspace::read(page)?);
        let followed = Mutex::default();
        Ok(Self { blocks, followed, folder: folder.to_owned(), environment: Vec::new() })
    }

    /// Opens another page at the same desk.
    pub(super) fn turn_to(&self, page: &str) -> Result<Self> {
        let environment = self.environment.clone();
        Ok(Self { environment, ..Self::open(page, &self.folder)? })
    }

    /// Sets a variable for its commands.
    pub(super) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.retain(|(given, _)| given != name);
        self.environment.push((name.into(), value.into()));
    }

    /// Where its commands run.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What stands between fences of `language` below `heading`.
    pub(super) fn text(&self, heading: &str, language: &str) -> Result<String> {
        let of = |block: &&Block| block.heading == heading && block.language == language;
        let texts: Vec<_> = self.blocks.iter().filter(of).map(|it| it.text.as_str()).collect();
        ensure!(!texts.is_empty(), "no {language} below {heading:?}");
        Ok(texts.concat())
    }

    /// Runs the commands below `heading`, as one script that ends with the first that fails; what they
    /// print.
    pub(super) async fn follow(&self, heading: &str) -> Result<String> {
        let script = self.text(heading, "sh")?;
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).insert(heading.to_owned());
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", &script]).current_dir(&self.folder);
        command.envs(self.environment.iter().cloned()).stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await?;
        let output = output.context("cannot run bash")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{heading}: {}", complaint.trim());
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The headings whose commands have been run.
    pub(super) fn followed(&self) -> BTreeSet<String> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The headings with commands, but for `these`.
    pub(super) fn but_for(&self, these: &BTreeSet<String>) -> BTreeSet<String> {
        let commands = self.blocks.iter().filter(|block| block.language == "sh");
        let headings = commands.map(|block| block.heading.clone());
        headings.filter(|heading| !these.contains(heading)).collect()
    }

    /// Puts `programs`, by the names that the page calls them, before all others.
    pub(super) fn provide(&mut self, programs: &[(&str, &Path)]) -> Result<()> {
        let bin = self.folder.join("bin");
        std::fs::create_dir(&bin)?;
        for (name, file) in programs {
            std::os::unix::fs::symlink(file, bin.join(name))?;
        }
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&inherited)))?;
        self.set("PATH", path);
        Ok(())
    }
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut heading = String::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                let (heading, language) = (heading.clone(), language.to_owned());
                open = Some(Block { heading, language, text: String::new() });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) if line.starts_with('#') => {
                line.trim_start_matches('#').trim().clone_into(&mut heading);
            }
            (None, None) => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_belongs_to_the_heading_above_it_and_a_comment_in_it_is_none() {
        let page = "# A\n```sh\n# not a heading\nrun\n```\ntext\n## B\n```yaml\na: b\n```\n";
        let block = |heading: &str, language: &str, text: &str| Block {
            heading: heading.to_owned(),
            language: language.to_owned(),
            text: text.to_owned(),
        };
        let expected = [block("A", "sh", "# not a heading\nrun\n"), block("B", "yaml", "a: b\n")];
        assert_eq!(blocks(page), expected);
    }

    #[tokio::test]
    async fn commands_are_run_in_the_folder_and_the_first_that_fails_ends_them() {
        let folder = tempfile::tempdir().unwrap();
        let page = "# Good\n```sh\necho \"$WORD\" > it\ncat it\n```\n# Bad\n```sh\ncat nothing | cat\ntouch b\n```\n";
        let mut guide = Guide {
            blocks: blocks(page),
            followed: Mutex::default(),
            folder: folder.path().to_owned(),
            environment: Vec::new(),
        };
        guide.set("WORD", "hello");
        assert_eq!(guide.follow("Good").await.unwrap(), "hello\n");
        assert_eq!(guide.but_for(&guide.followed()), BTreeSet::from(["Bad".to_owned()]));
        let error = guide.follow("Bad").await.unwrap_err().to_string();
        assert!(error.starts_with("Bad: ") && error.contains("nothing"), "{error}");
        assert!(!folder.path().join("b").exists());
        assert!(guide.follow("Elsewhere").await.is_err());
    }
}
