//! Plain: no framework.
//!
//! | what | value |
//! |---|---|
//! | nodes of the training step | `spec.trainer.numNodes` |
//!
//! Everything else that a TrainJob says is written into every JobSet, whatever its framework.

use super::draft::Draft;

/// Writes the table above into the draft.
pub(super) fn enforce(draft: &mut Draft<'_>) {
    draft.apply_num_nodes();
}
