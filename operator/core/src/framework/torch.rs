//! PyTorch, by its elastic launcher or by torchtune.

pub(super) mod build;
mod torchtune;
pub(super) mod validate;
