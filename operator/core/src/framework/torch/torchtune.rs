//! torchtune: recipes of PyTorch, which a job asks for by the command `tune run`.

pub(super) mod build;
pub(super) mod validate;
