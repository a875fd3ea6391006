//! Which of the two forms a schema has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the deadline and the TTL may be changed after a TrainJob was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
pub enum FieldUpdates {
    /// They may not. The schema says it of the deadline (as upstream's does), the webhook of both.
    #[default]
    Immutable,
    /// They may: the schema carries no transition rule on the deadline.
    Mutable,
}
