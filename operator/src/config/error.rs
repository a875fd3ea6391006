/// Why there is no configuration; one line.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {}
