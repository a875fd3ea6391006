//! What the bad neighbour does, and how late that may make others.

use clap::ValueEnum;

/// A row of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// The deletions of its JobSets hang.
    HangDelete,
    /// The status writes of its TrainJobs hang.
    HangPatch,
    /// The creations of its JobSets hang.
    HangPost,
    /// The lists of its Pods hang.
    HangList,
    /// Like `hang-delete`, with five places for requests.
    FewDelete,
    /// Like `hang-patch`, with five places for requests.
    FewPatch,
    /// Like `hang-post`, with five places for requests.
    FewPost,
    /// Like `hang-list`, with five places for requests.
    FewList,
    /// Service accounts of tenants flood the API server.
    Flood,
    /// Its jobs cause warnings.
    Warnings,
}

/// A kind of request that hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hang {
    pub(super) verb: &'static str,
    pub(super) resource: &'static str,
    pub(super) subresource: &'static str,
    /// How many requests of any kind the operator may have under way; without it, as many as by default.
    pub(super) places: Option<usize>,
}

/// How late what happens to a neighbour may be, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bars {
    pub(super) new_p99: f64,
    pub(super) deadline: f64,
    pub(super) ttl: f64,
}

/// So few places that those who hang could have all of them.
const FEW: usize = 5;

impl Case {
    /// What it is called in a table.
    pub(super) fn name(self) -> String {
        let what = match self {
            Self::HangDelete | Self::FewDelete => "DELETE of JobSets hangs",
            Self::HangPatch | Self::FewPatch => "PATCH of TrainJobs hangs",
            Self::HangPost | Self::FewPost => "POST of JobSets hangs",
            Self::HangList | Self::FewList => "LIST of Pods hangs",
            Self::Flood => "flood of requests",
            Self::Warnings => "warnings",
        };
        match self.places() {
            Some(places) => format!("{what}, {places} places"),
            None => what.to_owned(),
        }
    }

    /// The requests that hang, if any do.
    pub(super) fn hang(self) -> Option<Hang> {
        let (verb, resource, subresource) = match self {
            Self::HangDelete | Self::FewDelete => ("delete", "jobsets", ""),
            Self::HangPatch | Self::FewPatch => ("patch", "trainjobs", "status"),
            Self::HangPost | Self::FewPost => ("create", "jobsets", ""),
            Self::HangList | Self::FewList => ("list", "pods", ""),
            Self::Flood | Self::Warnings => return None,
        };
        Some(Hang { verb, resource, subresource, places: self.places() })
    }

    /// How late others may be.
    pub(super) fn bars(self) -> Bars {
        match self.places() {
            Some(_) => Bars { new_p99: 5_000.0, deadline: 5_000.0, ttl: 5_000.0 },
            None => Bars { new_p99: 1_000.0, deadline: 1_000.0, ttl: 2_000.0 },
        }
    }

    fn places(self) -> Option<usize> {
        let few = [Self::FewDelete, Self::FewPatch, Self::FewPost, Self::FewList];
        few.contains(&self).then_some(FEW)
    }
}
