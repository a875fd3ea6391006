//! The API group `trainer.kubeflow.org`, one module for each of its versions.

pub mod v1alpha1;
