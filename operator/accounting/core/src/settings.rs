//! What the operator of a cluster can set, as far as decisions need it.

use std::time::Duration;

/// Resources that are GPUs, unless others are set.
pub const GPU_RESOURCES: [&str; 7] = [
    "nvidia.com/gpu",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "google.com/tpu",
    "aws.amazon.com/neuron",
];

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The exact names of the resources that are GPUs.
    pub gpu_resources: Vec<String>,
    /// How long a Pod that nobody waits for may wait for others (AG9).
    pub batch_period: Duration,
    /// How long a Pod that somebody waits for is held at most; `None`: for ever (AH2).
    pub hold_limit: Option<Duration>,
    /// Whether messages of failures are kept.
    pub failure_messages: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gpu_resources: GPU_RESOURCES.map(Into::into).into(),
            batch_period: Duration::from_secs(5),
            hold_limit: Some(Duration::from_mins(5)),
            failure_messages: true,
        }
    }
}

impl Settings {
    /// Whether a resource is a GPU.
    #[must_use]
    pub fn is_gpu(&self, resource: &str) -> bool {
        self.gpu_resources.iter().any(|gpu| gpu == resource)
    }
}
