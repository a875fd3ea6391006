//! Which program this is, and what its manual page says.

use std::num::NonZeroUsize;

use crate::metrics::requests::Kinds;

/// Words or names, each with what is said of it. A text has lines of at most 66 characters.
pub type Entries = &'static [(&'static str, &'static str)];

/// Which program this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// What the names of its own metrics begin with.
    pub metrics: &'static str,
    /// The kinds that it sends requests about.
    pub kinds: Kinds,
    /// How many threads run its tasks; `None`: as many as there are cores. Of several, each wakes others up for what one
    /// could do.
    pub threads: Option<NonZeroUsize>,
    /// The flags that only it takes.
    pub flags: &'static [OwnFlag],
    /// The rest of what `--help` says of it.
    pub manual: Manual,
}

/// A flag that only one of the programs takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnFlag {
    /// Its name, without dashes.
    pub name: &'static str,
    /// What its value is called; `None`: it has none.
    pub value: Option<&'static str>,
    /// What it means, in one line.
    pub help: &'static str,
}

/// What only one of the programs does, in the words of its manual page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manual {
    /// What it does, in one or more paragraphs, in lines of at most 100 characters.
    pub description: &'static str,
    /// What it serves, and where.
    pub servers: Entries,
    /// Files that only it reads.
    pub files: Entries,
    /// Environment variables that only it reads.
    pub environment: Entries,
    /// What it does when it is asked to stop.
    pub stopping: &'static str,
    /// The last of what makes it end with exit status 1.
    pub failures: Entries,
}
