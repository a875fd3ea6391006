//! The schedulers that place gangs, one file each.
//!
//! A new one is a file that implements [`GangScheduler`], a line in the list below, its policy in
//! `api/src/trainer/v1alpha1/runtime.rs` and the operator's RBAC. Everything else iterates over [`Scheduler::ALL`] or is
//! generic over [`PodGroupKind`].

mod coscheduling;
mod gang_scheduler;
mod volcano;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use trainjob_api::{JobSet, podgroup::Spec as _, v1alpha1::runtime::PodGroupPolicy};

pub use self::gang_scheduler::GangScheduler;
use crate::build::gang::Gang;

/// Everything that there is once for each scheduler of the list.
macro_rules! schedulers {
    ($d:tt $($(#[$doc:meta])* $Scheduler:ident, $field:ident: $Spec:ty;)+) => {
        /// A scheduler that places gangs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Scheduler { $($(#[$doc])* $Scheduler,)+ }

        impl Scheduler {
            /// All of them.
            pub const ALL: [Self; [$(Self::$Scheduler),+].len()] = [$(Self::$Scheduler),+];
        }

        /// What a `PodGroup` asks for, of which scheduler.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum PodGroupSpec { $($(#[$doc])* $Scheduler($Spec),)+ }

        impl PodGroupSpec {
            /// Of whom it is asked.
            #[must_use]
            pub const fn scheduler(&self) -> Scheduler {
                match self { $(Self::$Scheduler(_) => Scheduler::$Scheduler,)+ }
            }
        }

        $(
            impl PodGroupKind for $Spec {
                const SCHEDULER: Scheduler = Scheduler::$Scheduler;
            }

            impl From<$Spec> for PodGroupSpec {
                fn from(spec: $Spec) -> Self {
                    Self::$Scheduler(spec)
                }
            }
        )+

        /// Something that there is once for each scheduler.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct PerScheduler<T> { $($(#[$doc])* pub $field: T,)+ }

        impl<T> PerScheduler<T> {
            /// What `of` makes for each.
            pub fn from_fn(mut of: impl FnMut(Scheduler) -> T) -> Self {
                Self { $($field: of(Scheduler::$Scheduler),)+ }
            }

            /// That of one scheduler.
            pub const fn of(&self, scheduler: Scheduler) -> &T {
                match scheduler { $(Scheduler::$Scheduler => &self.$field,)+ }
            }

            /// That of one scheduler, to be changed.
            pub const fn of_mut(&mut self, scheduler: Scheduler) -> &mut T {
                match scheduler { $(Scheduler::$Scheduler => &mut self.$field,)+ }
            }
        }

        /// The types of the list, for [`with_scheduler`] in other crates.
        #[doc(hidden)]
        pub mod specs {
            $(pub type $Scheduler = $Spec;)+
        }

        /// Evaluates an expression with the type that implements [`PodGroupKind`](crate::scheduler::PodGroupKind) for a
        /// scheduler, `with_scheduler!(scheduler, S => …)`, or for a spec, with that spec,
        /// `with_scheduler!(spec, S(spec) => …)`.
        #[macro_export]
        macro_rules! with_scheduler {
            ($d scheduler:expr, $d S:ident => $d body:expr) => {
                match $d scheduler {
                    $($crate::scheduler::Scheduler::$Scheduler => {
                        type $d S = $crate::scheduler::specs::$Scheduler;
                        $d body
                    })+
                }
            };
            ($d spec:expr, $d S:ident($d it:ident) => $d body:expr) => {
                match $d spec {
                    $($crate::scheduler::PodGroupSpec::$Scheduler($d it) => {
                        type $d S = $crate::scheduler::specs::$Scheduler;
                        $d body
                    })+
                }
            };
        }
    };
}

schedulers! { $
    /// The coscheduling plugin of scheduler-plugins.
    Coscheduling, coscheduling: crate::scheduler::coscheduling::CoschedulingSpec;
    /// Volcano.
    Volcano, volcano: crate::scheduler::volcano::VolcanoSpec;
}

/// What a scheduler of the list is asked for.
pub trait PodGroupKind: GangScheduler + Into<PodGroupSpec> {
    /// Which one that is.
    const SCHEDULER: Scheduler;
}

impl Scheduler {
    /// What readiness, metrics and logs call its kind.
    #[must_use]
    pub const fn pod_group_name(self) -> &'static str {
        with_scheduler!(self, S => S::NAME)
    }

    /// The field of `spec.podGroupPolicy` by which a runtime asks for it.
    #[must_use]
    pub const fn policy(self) -> &'static str {
        with_scheduler!(self, S => S::POLICY)
    }

    /// What a job is told that asks for it where its kind is not served.
    pub(crate) fn not_served(self) -> String {
        let kind = |group: &str, version: &str| format!("{group}/{version}");
        let (policy, kind, install) =
            with_scheduler!(self, S => (S::POLICY, kind(S::GROUP, S::VERSION), S::INSTALL));
        format!(
            "the runtime asks for podGroupPolicy.{policy}, but the cluster has no PodGroups of {kind}, or the \
             operator cannot list them; install {install}, or use a runtime without"
        )
    }

    /// Makes a Pod a member of the `PodGroup` of this name.
    pub(crate) fn join(self, pod: &mut ObjectMeta, group: &str) {
        with_scheduler!(self, S => S::join(pod, group));
    }

    /// What its `PodGroup` asks for, if the runtime asks for it.
    pub(crate) fn spec(
        self,
        gang: Gang,
        policies: &PodGroupPolicy,
        job_set: &JobSet,
    ) -> Option<PodGroupSpec> {
        with_scheduler!(self, S => {
            S::policy(policies).map(|policy| S::spec(gang, policy, job_set).into())
        })
    }

    /// Those that a runtime asks for. More than one is an error of whoever wrote it.
    pub fn asked(policies: &PodGroupPolicy) -> impl Iterator<Item = Self> {
        let asked = |scheduler| with_scheduler!(scheduler, S => S::policy(policies).is_some());
        Self::ALL.into_iter().filter(move |scheduler| asked(*scheduler))
    }
}

impl<T> PerScheduler<T> {
    /// Another thing for each.
    pub fn map<'a, U>(&'a self, mut to: impl FnMut(&'a T) -> U) -> PerScheduler<U> {
        PerScheduler::from_fn(|scheduler| to(self.of(scheduler)))
    }
}
