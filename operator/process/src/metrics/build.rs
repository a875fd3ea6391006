//! What a program was built from.

use prometheus::{IntGaugeVec, Opts, Registry, Result};

/// Registers the version of the program whose metrics begin with `prefix`.
///
/// # Errors
///
/// There is a metric of its name.
pub fn build_info(registry: &Registry, prefix: &str) -> Result<()> {
    let name = format!("{prefix}_build_info");
    let opts = Opts::new(name, "1, with the version of the program.");
    let info = IntGaugeVec::new(opts, &["version"])?;
    info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
    registry.register(Box::new(info))
}
