//! The API server, by a kubeconfig, and its time.

use std::time::{Duration, SystemTime};

use http::{Request, header::DATE};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use trainjob_api::time::Timestamp;

use crate::{arguments::Place, failure::Failure};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest that nothing comes of an answer. Admission webhooks may take ten seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The API server, and the namespace that is meant where none is named.
#[derive(Clone)]
pub struct Access {
    /// What sends requests.
    pub client: Client,
    /// That of `--namespace`, or of the context.
    pub namespace: String,
}

impl Access {
    /// Sets up a client as kubectl does: from the named kubeconfig, from those of `$KUBECONFIG`, from `~/.kube/config`, or
    /// as a Pod. Sends nothing.
    ///
    /// # Errors
    ///
    /// There is no kubeconfig, it cannot be read, or it has no such context.
    pub async fn new(place: &Place) -> Result<Self, Failure> {
        let config = limited(config(place).await?);
        let default = config.default_namespace.clone();
        let namespace = place.namespace.clone().unwrap_or(default);
        let client = Client::try_from(config).map_err(|error| Failure::Client(Box::new(error)))?;
        Ok(Self { client, namespace })
    }

    /// The time of the API server, by whose clock deadlines and TTLs run, to the second; that of this machine if the
    /// server does not say.
    pub async fn now(&self) -> Timestamp {
        self.server_time().await.unwrap_or_else(SystemTime::now).into()
    }

    /// What everybody may ask for.
    async fn server_time(&self) -> Option<SystemTime> {
        let request = Request::get("/version").body(Body::from(Vec::new())).ok()?;
        let answer = self.client.send(request).await.ok()?;
        httpdate::parse_http_date(answer.headers().get(DATE)?.to_str().ok()?).ok()
    }
}

/// The same for somebody who waits for the answer. kube would send a request that the API server turns away again for
/// minutes, while the user sees nothing; and a write that has taken effect all the same would meet its own change.
fn limited(mut config: Config) -> Config {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    config.default_retry = false;
    config
}

async fn config(place: &Place) -> Result<Config, Failure> {
    let kubeconfig = match &place.kubeconfig {
        Some(path) => Kubeconfig::read_from(path)?,
        None if place.context.is_none() => return Ok(Config::infer().await?),
        None => Kubeconfig::read()?,
    };
    let context = place.context.clone();
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let known: Vec<_> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| match error {
        KubeconfigError::LoadContext(name) if place.context.is_some() => Failure::Flag {
            flag: "--context",
            what: format!("the kubeconfig has no context {name}; it has {}", known.join(", ")),
        },
        error => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_waits_for_one_answer_and_not_for_fifteen() {
        let config = limited(Config::new("https://api.example.com".parse().unwrap()));
        assert!(!config.default_retry);
        assert_eq!(config.connect_timeout, Some(CONNECT_TIMEOUT));
        assert_eq!(config.read_timeout, Some(READ_TIMEOUT));
    }
}
