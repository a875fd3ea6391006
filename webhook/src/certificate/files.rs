//! The serving certificate from a directory with `tls.crt` and `tls.key`.
//!
//! What counts is the content, read every few seconds: file times and notifications say little about
//! volumes, in which the kubelet swaps a symbolic link. A pair that is damaged, does not fit or is not
//! valid now is refused; the one in use stays.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use thiserror::Error;
use tokio::{task::spawn_blocking, time::sleep};
use trainjob_api::time::Timestamp;

use super::{
    serving::{Current, Refusal, Serving, certified},
    trouble::Trouble,
};
use crate::metrics::Metrics;

/// The chain, the certificate of the server first.
pub const CERTIFICATE: &str = "tls.crt";
/// Its private key.
pub const KEY: &str = "tls.key";

/// The most that is read of a file.
const LONGEST: u64 = 1024 * 1024;
/// How often in a row a pair is read that changes while it is read.
const ATTEMPTS: u32 = 3;

/// Loads what is in the directory, now and whenever it has changed; never ends.
pub async fn follow(
    directory: PathBuf,
    interval: Duration,
    serving: Serving,
    metrics: Arc<Metrics>,
) {
    let mut follower = Follower::default();
    loop {
        let at = directory.clone();
        let read = spawn_blocking(move || Pair::read(&at)).await.unwrap_or_else(|error| {
            Err(Problem::Unreadable(CERTIFICATE, io::Error::other(error.to_string())))
        });
        let directory = directory.display();
        match follower.judge(read, SystemTime::now()) {
            Verdict::Unchanged => {}
            Verdict::Load(current) => {
                metrics.certificate_loaded(current.expiry);
                let expiry = Timestamp::from(current.expiry);
                tracing::info!(%directory, %expiry, "serving certificate loaded");
                serving.set(current.key, current.expiry);
            }
            Verdict::Refuse(error) => {
                metrics.certificate_refused();
                tracing::error!(%directory, %error, "serving certificate refused");
            }
        }
        sleep(interval).await;
    }
}

/// Why a directory holds no serving certificate.
#[derive(Debug, Error)]
enum Problem {
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(&'static str, #[source] io::Error),
    /// The files are there and of no use.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The one in use is over.
    #[error("it expired at {0}, and there is no other")]
    Expired(Timestamp),
}

/// The content of both files.
#[derive(PartialEq, Eq)]
struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Pair {
    /// Reads both, again if they were replaced meanwhile.
    fn read(directory: &Path) -> Result<Self, Problem> {
        let mut pair = Self::read_once(directory)?;
        for _ in 1..ATTEMPTS {
            let again = Self::read_once(directory)?;
            if again == pair {
                break;
            }
            pair = again;
        }
        Ok(pair)
    }

    fn read_once(directory: &Path) -> Result<Self, Problem> {
        let content = |name| {
            let mut content = Vec::new();
            File::open(directory.join(name))
                .and_then(|file| file.take(LONGEST).read_to_end(&mut content))
                .map_err(|error| Problem::Unreadable(name, error))?;
            Ok::<_, Problem>(content)
        };
        Ok(Self { certificate: content(CERTIFICATE)?, key: content(KEY)? })
    }
}

/// What was loaded last, and what is wrong now.
#[derive(Default)]
struct Follower {
    loaded: Option<(Pair, SystemTime)>,
    trouble: Trouble,
}

/// What follows from a look into the directory.
#[derive(Debug)]
enum Verdict {
    /// Nothing that was not said before.
    Unchanged,
    /// Another certificate is to be used.
    Load(Current),
    /// What is there is of no use, and was not called so before.
    Refuse(Problem),
}

impl Follower {
    fn judge(&mut self, read: Result<Pair, Problem>, now: SystemTime) -> Verdict {
        match self.look(read, now) {
            Ok(verdict) => {
                self.trouble.over();
                verdict
            }
            Err(problem) if self.trouble.is_new(problem.to_string()) => Verdict::Refuse(problem),
            Err(_) => Verdict::Unchanged,
        }
    }

    fn look(&mut self, read: Result<Pair, Problem>, now: SystemTime) -> Result<Verdict, Problem> {
        let pair = read?;
        match &self.loaded {
            Some((loaded, expiry)) if *loaded == pair => {
                if *expiry <= now {
                    return Err(Problem::Expired((*expiry).into()));
                }
                Ok(Verdict::Unchanged)
            }
            _ => {
                let current = certified(&pair.certificate, &pair.key, now)?;
                self.loaded = Some((pair, current.expiry));
                Ok(Verdict::Load(current))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::certificate::serving::tests::pair;

    fn content((certificate, key): &(String, String)) -> Pair {
        Pair { certificate: certificate.clone().into(), key: key.clone().into() }
    }

    fn missing() -> Result<Pair, Problem> {
        Pair::read(Path::new("/nowhere"))
    }

    #[test]
    fn what_changes_is_loaded_and_what_is_wrong_is_said_once() {
        const YEAR: Duration = Duration::from_hours(24 * 365);
        let (one, two) = (pair(2020..2120), pair(2020..2121));
        let mixed = (one.0.clone(), two.1.clone());
        let half = (one.0.clone(), one.1[..one.1.len() / 2].to_owned());
        let past = pair(2020..2021);
        let now = SystemTime::now();
        let mut follower = Follower::default();
        for (step, (read, later, expected)) in [
            (missing(), 0, "refuse"),
            (missing(), 0, "unchanged"),
            (Ok(content(&half)), 0, "refuse"),
            (Ok(content(&one)), 0, "load"),
            (Ok(content(&one)), 0, "unchanged"),
            (Ok(content(&mixed)), 0, "refuse"),
            (Ok(content(&mixed)), 0, "unchanged"),
            (Ok(content(&half)), 0, "refuse"),
            (missing(), 0, "refuse"),
            // Back to what is in use: nothing to load, and what is wrong next is new again.
            (Ok(content(&one)), 0, "unchanged"),
            (missing(), 0, "refuse"),
            (Ok(content(&past)), 0, "refuse"),
            (Ok(content(&two)), 0, "load"),
            (Ok(content(&two)), 200, "refuse"),
            (Ok(content(&two)), 200, "unchanged"),
        ]
        .into_iter()
        .enumerate()
        {
            let verdict = match follower.judge(read, now + later * YEAR) {
                Verdict::Unchanged => "unchanged",
                Verdict::Load(_) => "load",
                Verdict::Refuse(_) => "refuse",
            };
            assert_eq!(verdict, expected, "step {step}");
        }
    }

    #[test]
    fn a_certificate_that_begins_later_is_loaded_when_it_begins() {
        let future = pair(2110..2120);
        let (now, begin) = (SystemTime::now(), SystemTime::from(Timestamp(4_417_977_600)));
        let mut follower = Follower::default();
        assert!(matches!(follower.judge(Ok(content(&future)), now), Verdict::Refuse(_)));
        assert!(matches!(follower.judge(Ok(content(&future)), begin), Verdict::Load(_)));
    }

    /// A volume as the kubelet makes it: the files are links into what `..data` points to.
    struct Volume(tempfile::TempDir);

    impl Volume {
        fn new(content: &(String, String)) -> Self {
            let volume = Self(tempfile::tempdir().unwrap());
            volume.swap("first", content);
            for name in [CERTIFICATE, KEY] {
                let link = volume.0.path().join(name);
                std::os::unix::fs::symlink(Path::new("..data").join(name), link).unwrap();
            }
            volume
        }

        fn swap(&self, version: &str, (certificate, key): &(String, String)) {
            let root = self.0.path();
            let directory = root.join(version);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join(CERTIFICATE), certificate).unwrap();
            fs::write(directory.join(KEY), key).unwrap();
            std::os::unix::fs::symlink(version, root.join("..new")).unwrap();
            fs::rename(root.join("..new"), root.join("..data")).unwrap();
        }
    }

    #[tokio::test]
    async fn a_volume_is_followed_through_its_swaps_and_a_bad_one_changes_nothing() {
        let (one, two) = (pair(2020..2120), pair(2020..2121));
        let bad = (two.0.clone(), one.1.clone());
        let volume = Volume::new(&one);
        let serving = Serving::new();
        let mut changes = serving.subscribe();
        let interval = Duration::from_millis(5);
        let metrics = Metrics::new().unwrap();
        let following =
            tokio::spawn(follow(volume.0.path().to_owned(), interval, serving, metrics));
        let mut expiries = Vec::new();
        for next in [None, Some([("bad", &bad), ("second", &two)])] {
            for (version, content) in next.into_iter().flatten() {
                volume.swap(version, content);
            }
            changes.changed().await.unwrap();
            expiries.push(changes.borrow_and_update().as_ref().unwrap().expiry);
        }
        let expected = [4_733_510_400, 4_765_132_800].map(|at| SystemTime::from(Timestamp(at)));
        assert_eq!(expiries, expected);
        following.abort();
    }
}
