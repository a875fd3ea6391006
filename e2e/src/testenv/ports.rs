//! Ports of 127.0.0.1 that nobody else will take.
//!
//! The port the system hands out for port 0 is free only until the next outgoing connection, of
//! this test or of another, happens to get it; an API server that is stopped and started again
//! would not get its port back. So ports are taken from below the range of outgoing connections,
//! and a lock each keeps other boxes away for as long as this process lives, however it ends. The lock
//! is a Unix socket with an abstract name: like the port, there is one for the whole network namespace,
//! whatever user or cache folder the other box has.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use anyhow::{Result, bail};

/// Below every system's range of outgoing connections and off the node ports.
const FIRST: u16 = 12_000;
const COUNT: u16 = 4_000;

/// A port that is ours until this value is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: UnixListener,
}

impl Port {
    /// Takes a free port.
    pub fn take() -> Result<Self> {
        // Starting anywhere keeps boxes that start at the same moment out of each other's way.
        let start = RandomState::new().hash_one(std::process::id());
        for step in 0..u64::from(COUNT) {
            let offset = u16::try_from((start.wrapping_add(step)) % u64::from(COUNT))?;
            let number = FIRST + offset;
            let Ok(lock) = lock(number) else { continue };
            if is_free(number) {
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

/// Fails if the port is somebody else's.
fn lock(number: u16) -> io::Result<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("trainjob-box-port-{number}"))?;
    UnixListener::bind_addr(&name)
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
        assert!(numbers.iter().all(|number| lock(*number).is_err()), "a lock is not held");
    }
}
