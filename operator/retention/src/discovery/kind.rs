//! Which kind is asked for.

/// A kind as the API server knows it.
#[derive(Debug, Clone, Copy)]
pub struct Kind<'a> {
    /// Its group; empty for the core group.
    pub group: &'a str,
    /// Its name.
    pub kind: &'a str,
    /// Its plural name.
    pub resource: &'a str,
}
