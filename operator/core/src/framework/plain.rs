//! Plain: no framework.
//!
//! | what | value |
//! |---|---|
//! | nodes of the trainer's replicated job | `spec.trainer.numNodes` |
//!
//! Everything else that a TrainJob says is written into every JobSet, whatever its framework.

use crate::build::draft::Draft;

/// Writes the table above into the draft.
pub(crate) fn enforce(draft: &mut Draft<'_>) {
    draft.apply_num_nodes();
}
