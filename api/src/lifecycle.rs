//! The API group `lifecycle.trainjob.dev`, this project's own, one module for each of its versions.

pub mod v1alpha1;
