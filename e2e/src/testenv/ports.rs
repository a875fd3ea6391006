//! Ports of 127.0.0.1 that nobody else will take.
//!
//! The port the system hands out for port 0 is free only until the next outgoing connection, of
//! this test or of another, happens to get it; an API server that is stopped and started again
//! would not get its port back. So ports are taken from below the range of outgoing connections,
//! and a lock file each keeps other boxes away for as long as this process lives, however it ends.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};

use crate::testenv::cache;

/// Below every system's range of outgoing connections and off the node ports.
const FIRST: u16 = 12_000;
const COUNT: u16 = 4_000;

/// A port that is ours until this value is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Takes a free port.
    pub fn take() -> Result<Self> {
        let locks = cache::directory()?.join("ports");
        fs::create_dir_all(&locks).with_context(|| format!("cannot create {}", locks.display()))?;
        // Starting anywhere keeps boxes that start at the same moment out of each other's way.
        let start = RandomState::new().hash_one(std::process::id());
        for step in 0..u64::from(COUNT) {
            let offset = u16::try_from((start.wrapping_add(step)) % u64::from(COUNT))?;
            let number = FIRST + offset;
            let lock = File::create(locks.join(number.to_string()))?;
            if lock.try_lock().is_ok() && is_free(number) {
                return Ok(Self { number, _lock: lock });
            }
        }
        bail!("no free port between {FIRST} and {}", FIRST + COUNT)
    }

    /// The number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}

fn is_free(number: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_not_given_twice_even_while_nothing_listens_on_it() {
        let ports: Vec<Port> = (0..50).map(|_| Port::take().unwrap()).collect();
        let mut numbers: Vec<u16> = ports.iter().map(Port::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 50);
        assert!(ports.iter().all(|port| is_free(port.number())));
    }
}
