//! The page of metrics, in the text format of Prometheus.

use hyper::StatusCode;
use prometheus::{Encoder, Registry, TextEncoder};

use crate::pages::{Page, Pages};

/// The path that metrics are served under.
const PATH: &str = "/metrics";

/// What a registry holds, at `/metrics`.
#[derive(Debug, Clone)]
pub(crate) struct Exposition(pub(crate) Registry);

impl Pages for Exposition {
    /// It may be looked at a hundred thousand jobs for it.
    fn takes_long(&self) -> bool {
        true
    }

    fn at(&self, path: &str) -> Option<Page> {
        if path != PATH {
            return None;
        }
        let mut text = Vec::new();
        Some(match TextEncoder::new().encode(&self.0.gather(), &mut text) {
            Ok(()) => Page {
                status: StatusCode::OK,
                content_type: prometheus::TEXT_FORMAT,
                body: text.into(),
            },
            Err(_) => Page::text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "metrics cannot be written".to_owned(),
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_page() {
        let exposition = Exposition(Registry::new());
        assert!(exposition.at("/metrics").is_some());
        assert_eq!(exposition.at("/"), None);
        assert_eq!(exposition.at("/metrics/"), None);
    }
}
