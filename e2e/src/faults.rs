//! The loop of faults: the whole life of TrainJobs, again and again, each time with one fault at one
//! call of the operator.
//!
//! First each [`scenario`] is lived undisturbed, which shows the calls that the operator makes in it.
//! Then, for every call: the operator is killed before the call reaches the API server, after it was
//! carried out but not answered, and after the answer, and another one is started; or the call is
//! answered with an error, or its answer is lost, once and three times in a row. Two of these may happen
//! in one life ([`pairs`]), and calls of one kind may fail or hang for a while ([`brown_out`]). Users
//! notice nothing of that ([`judge`]): the life ends as the undisturbed one did, with the same objects,
//! the same conditions and as many creations and deletions of each.
//!
//! Every [`case`] has a name that runs it alone. Cases share a box, but each has a namespace, a proxy
//! and an operator of its own, so that many run side by side.

mod accounting;
mod baseline;
pub mod blow;
pub mod brown_out;
pub mod campaign;
pub mod case;
mod disturb;
mod ground;
mod judge;
mod left;
mod life;
mod operator_slot;
pub mod pairs;
pub mod proxy;
mod purpose;
pub mod report;
pub mod retention;
mod running;
pub mod scenario;
pub mod selection;
mod strike;
pub mod verdict;

pub use campaign::{Campaign, Kind, Plan};
pub use pairs::Sample;
pub use report::report;
pub use scenario::Program;
pub use selection::Selection;
