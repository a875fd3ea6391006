//! Who may talk to whom: one certificate authority, one serving certificate, tokens, kubeconfigs.
//!
//! All of it is made before anything runs, so that a program can be given its kubeconfig while
//! there is no API server yet.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Who a token of the box stands for.
///
/// The components have the identities they have in a real cluster, because the API server's permissions
/// and its priority and fairness depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// A cluster administrator.
    Admin,
    ControllerManager,
    Scheduler,
    JobSet,
    /// KWOK plays all kubelets.
    Kwok,
    /// The kubelet of the real node.
    Kubelet,
}

impl Identity {
    const ALL: [Self; 6] = [
        Self::Admin,
        Self::ControllerManager,
        Self::Scheduler,
        Self::JobSet,
        Self::Kwok,
        Self::Kubelet,
    ];

    /// Its user name.
    pub(crate) const fn user(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::ControllerManager => "system:kube-controller-manager",
            Self::Scheduler => "system:kube-scheduler",
            Self::JobSet => "system:serviceaccount:jobset-system:jobset-controller-manager",
            Self::Kwok => "kwok",
            Self::Kubelet => "system:node:real",
        }
    }

    const fn groups(self) -> &'static str {
        match self {
            Self::Admin | Self::Kwok => "system:masters",
            Self::ControllerManager | Self::Scheduler => "",
            Self::JobSet => "system:serviceaccounts,system:serviceaccounts:jobset-system",
            Self::Kubelet => "system:nodes",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Admin => "admin.kubeconfig",
            Self::ControllerManager => "controller-manager.kubeconfig",
            Self::Scheduler => "scheduler.kubeconfig",
            Self::JobSet => "jobset.kubeconfig",
            Self::Kwok => "kwok.kubeconfig",
            Self::Kubelet => "kubelet.kubeconfig",
        }
    }
}

/// The files of a box that hold credentials.
#[derive(Debug)]
pub(crate) struct Credentials {
    folder: PathBuf,
    server: String,
    authority: String,
}

impl Credentials {
    /// Makes all of them, for an API server on `port`, below `folder`.
    pub(crate) fn create(folder: &Path, port: u16) -> Result<Self> {
        let folder = folder.join("credentials");
        fs::create_dir(&folder)?;
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "trainjob-box");
        let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?;

        let server = format!("https://127.0.0.1:{port}");
        let new = Self { folder, server, authority: authority.pem() };
        let key = KeyPair::generate()?;
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let certificate = CertificateParams::new(names)?.signed_by(&key, &authority)?;
        new.write("ca.crt", &new.authority)?;
        new.write("tls.crt", &certificate.pem())?;
        new.write("tls.key", &key.serialize_pem())?;

        let signing = KeyPair::generate()?;
        new.write("service-accounts.key", &signing.serialize_pem())?;
        new.write("service-accounts.pub", &signing.public_key_pem())?;
        new.write_tokens()?;
        Ok(new)
    }

    /// In one step: a program that reads the file while another is started with a new token finds the old one or the new.
    fn write(&self, name: &str, content: &str) -> Result<()> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let path = self.path(name);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.path(&format!("{name}.{number}"));
        fs::write(&unfinished, content)
            .and_then(|()| fs::rename(&unfinished, &path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn write_tokens(&self) -> Result<()> {
        let mut table = String::new();
        for identity in Identity::ALL {
            let token = random_token()?;
            let (user, groups) = (identity.user(), identity.groups());
            writeln!(table, "{token},{user},{user},\"{groups}\"")?;
            self.write(identity.file(), &self.kubeconfig_text(&token))?;
        }
        self.write("tokens.csv", &table)
    }

    /// The path of one of the files: `ca.crt`, `tls.crt`, `tls.key`, `service-accounts.key`,
    /// `service-accounts.pub` or `tokens.csv`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder with `tls.crt` and `tls.key`, the names webhook servers expect.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The certificate of the authority, as PEM.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// The kubeconfig of one of the box's own identities.
    pub(crate) fn kubeconfig(&self, identity: Identity) -> PathBuf {
        self.path(identity.file())
    }

    /// Writes a kubeconfig for a bearer of `token` to `NAME.kubeconfig`.
    pub(crate) fn write_kubeconfig(&self, name: &str, token: &str) -> Result<PathBuf> {
        let file = format!("{name}.kubeconfig");
        self.write(&file, &self.kubeconfig_text(token))?;
        Ok(self.path(&file))
    }

    fn kubeconfig_text(&self, token: &str) -> String {
        format!(
            "apiVersion: v1
kind: Config
current-context: box
contexts: [{{name: box, context: {{cluster: box, user: box}}}}]
clusters:
- name: box
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: box
  user:
    token: {token}
",
            server = self.server,
            authority = STANDARD.encode(&self.authority),
        )
    }
}

/// A client with the permissions `kubeconfig` gives.
///
/// It belongs to the async runtime it is made in: each test makes its own.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// A token nobody can guess: some of them give every permission in the box.
fn random_token() -> Result<String> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut token, byte| {
        // Writing to a string cannot fail.
        let _ = write!(token, "{byte:02x}");
        token
    }))
}
