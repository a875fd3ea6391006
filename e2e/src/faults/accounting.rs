//! Where the accounting program is disturbed: a box with an operator that marks Pods, and for each case a namespace with a
//! program behind a proxy.
//!
//! A program sees its own namespace only, so that many cases are played side by side. None is elected: the operator goes by
//! the Lease of one that counts nothing, and a program that was killed is replaced at once. Each case is judged by what the
//! API server stored ([`invariants::accounting`]), and its record has to say in the end what that of the undisturbed life
//! says (A11), unless Pods were let go: then it has to tell of these (AH2).

mod ground;
mod judge;
mod life;
mod slot;

pub(super) use self::ground::Ground;
pub(super) use self::life::live;
