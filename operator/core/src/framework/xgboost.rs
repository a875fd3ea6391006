//! `XGBoost`.

pub(super) mod build;
pub(super) mod validate;
