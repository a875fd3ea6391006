//! How long one request to watch goes on.

/// How long a watch goes on before the API server ends it, and it is begun anew where it was: one request.
///
/// A connection whose path is dead is closed by the system, whatever the span (`trainjob_process::client`). One that is alive
/// but silent shows by the end that does not come: it is given up five seconds later (`docs/decisions.md`, 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Four seconds, where what is not seen does harm.
    Short,
    /// A minute.
    Long,
}

impl Span {
    /// After how many seconds the API server ends the watch.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        match self {
            Self::Short => 4,
            Self::Long => 60,
        }
    }
}
