//! PyTorch, by its elastic launcher or by torchtune.

pub(super) mod build;
mod processes;
mod torchtune;
pub(super) mod validate;
