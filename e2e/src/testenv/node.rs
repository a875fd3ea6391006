//! A real node: containerd, runc and a kubelet in namespaces of their own, with a control plane beside them.
//!
//! Fake nodes say that Pods run; a real one runs them. What only it can show is whether a training talks over its
//! network, what a process does with SIGTERM, when the last one is gone, and what the kernel kills.
//!
//! Everything is in a private network, which the process that asks for a node is not in: [`visit`] goes there on a
//! thread, with whatever is started from it. Only the node itself is also in private mount, process, IPC, UTS and
//! cgroup namespaces. Nothing is installed: Debian's packages are unpacked into the user's cache directory and laid
//! over `/usr` in the namespaces.

mod containerd;
mod groups;
mod host;
pub mod image;
pub mod jax;
mod kubelet;
mod name_server;
mod needs;
mod packages;
pub mod pods;
mod sandbox;
mod visit;

pub use self::host::Node;
pub use self::needs::missing;
pub use self::packages::Packages;
pub use self::visit::{Tell, visit};
