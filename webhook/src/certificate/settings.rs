//! What a self-managed certificate depends on.

use std::time::Duration;

/// Where the CA is kept, what the certificate is for, and how long they live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Namespace of the Secret and of the Service.
    pub namespace: String,
    /// Name of the Secret that holds the CA.
    pub secret: String,
    /// Name of the Service that the API server calls.
    pub service: String,
    /// Further names that the certificate is valid for: DNS names or IP addresses.
    pub names: Vec<String>,
    /// How long a CA is valid.
    pub authority_lifetime: Duration,
    /// How long before its end a CA is replaced; at most half its life.
    pub authority_renew_before: Duration,
    /// How long a certificate is valid; never longer than its CA.
    pub lifetime: Duration,
    /// How long before its end a certificate is replaced; at most half its life.
    pub renew_before: Duration,
    /// How long a new CA stands in the webhook configurations before it signs.
    pub bundle_lead: Duration,
}

impl Settings {
    /// Those of a Secret and a Service, with the usual times.
    #[cfg(test)]
    pub(super) fn new(namespace: String, secret: String, service: String) -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            namespace,
            secret,
            service,
            names: Vec::new(),
            authority_lifetime: 3650 * DAY,
            authority_renew_before: 90 * DAY,
            lifetime: 365 * DAY,
            renew_before: 90 * DAY,
            bundle_lead: Duration::from_mins(5),
        }
    }

    /// Every name that the certificate is valid for.
    #[must_use]
    pub fn all_names(&self) -> Vec<String> {
        let service = format!("{}.{}.svc", self.service, self.namespace);
        let mut names = vec![service.clone(), format!("{service}.cluster.local")];
        for name in &self.names {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_service_and_then_the_further_ones_each_once() {
        let mut settings = Settings::new("ns".into(), "ca".into(), "hook".into());
        let service = ["hook.ns.svc", "hook.ns.svc.cluster.local"];
        assert_eq!(settings.all_names(), service);
        settings.names = vec!["10.0.0.1".into(), "hook.ns.svc".into(), "hook.example".into()];
        assert_eq!(settings.all_names(), [service[0], service[1], "10.0.0.1", "hook.example"]);
    }
}
