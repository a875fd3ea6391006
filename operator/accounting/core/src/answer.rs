//! What a failed request means (`docs/accounting.md`, 7).

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// 404: there is no such object.
    NotFound,
    /// 404: there is no such namespace.
    NoNamespace,
    /// 404: the API server does not serve the kind.
    NotServed,
    /// 409: the object is one of another UID.
    OtherUid,
    /// 409: the version has changed.
    Conflict,
    /// 409: there is an object of that name. Whether it is ours is judged by the UID in its spec.
    AlreadyExists {
        /// Whether it is about the same TrainJob.
        same: bool,
    },
    /// 422.
    Invalid,
    /// 422 on `metadata.uid`: the object is one of another UID.
    InvalidUid,
    /// 403 with the cause `NamespaceTerminating`.
    NamespaceTerminating,
    /// 403 for any other reason: a right, a quota, a webhook.
    Forbidden,
    /// 429 or 5xx: it was not carried out, or it was.
    Unavailable,
    /// There was no answer.
    Unanswered,
    /// There was none, nor does the API server answer anything else. Or this process does not lead, and nothing was sent.
    Silent,
}

/// What follows for the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForRecord {
    /// It is gone: make it anew, as one that was recreated.
    Create,
    /// Another record has the name: take the long one.
    CreateWithLongName,
    /// Its version is not ours any more (AG5).
    Prove,
    /// Nothing can be created: its Pods are released at once, and lost in the metric.
    LetAllGo,
    /// There is nothing to create it in, and all its Pods are gone.
    ForgetAll,
    /// It is refused, by whom only people can help: the same again, and somebody is told.
    Refused,
    /// The same again.
    Again,
}

/// What follows for a Pod that was to be released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForPod {
    /// There is nothing to release.
    Released,
    /// There is nothing to release, if the watch or a list shows so, too. Until then, the same again.
    Absent,
    /// The same again.
    Again,
    /// The same again, and somebody is told: only who refuses it can mend that (AH5).
    Refused,
}

/// After a request about the record.
#[must_use]
pub const fn for_record(failure: Failure) -> ForRecord {
    match failure {
        Failure::NotFound | Failure::OtherUid | Failure::InvalidUid => ForRecord::Create,
        Failure::Conflict
        | Failure::AlreadyExists { same: true }
        | Failure::Unanswered
        | Failure::Silent => ForRecord::Prove,
        Failure::AlreadyExists { same: false } => ForRecord::CreateWithLongName,
        Failure::NamespaceTerminating => ForRecord::LetAllGo,
        Failure::NoNamespace => ForRecord::ForgetAll,
        Failure::NotServed | Failure::Invalid | Failure::Forbidden => ForRecord::Refused,
        Failure::Unavailable => ForRecord::Again,
    }
}

/// Whether the API server carries out nothing, as far as this failure of a PATCH of a Pod tells (AH3).
#[must_use]
pub const fn says_silence(failure: Failure) -> bool {
    matches!(failure, Failure::Unavailable | Failure::Unanswered | Failure::Silent)
}

/// After the PATCH of a Pod.
#[must_use]
pub const fn for_pod(failure: Failure) -> ForPod {
    match failure {
        Failure::OtherUid | Failure::InvalidUid | Failure::NoNamespace => ForPod::Released,
        Failure::NotFound => ForPod::Absent,
        Failure::Conflict
        | Failure::AlreadyExists { .. }
        | Failure::NotServed
        | Failure::Unavailable
        | Failure::Unanswered
        | Failure::Silent => ForPod::Again,
        Failure::Invalid | Failure::NamespaceTerminating | Failure::Forbidden => ForPod::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure as F, ForPod as P, ForRecord as R, for_pod, for_record};

    #[test]
    fn ag8_every_answer_has_a_consequence() {
        for (failure, record, pod) in [
            (F::NotFound, R::Create, P::Absent),
            (F::NoNamespace, R::ForgetAll, P::Released),
            (F::NotServed, R::Refused, P::Again),
            (F::OtherUid, R::Create, P::Released),
            (F::Conflict, R::Prove, P::Again),
            (F::AlreadyExists { same: true }, R::Prove, P::Again),
            (F::AlreadyExists { same: false }, R::CreateWithLongName, P::Again),
            (F::Invalid, R::Refused, P::Refused),
            (F::InvalidUid, R::Create, P::Released),
            (F::NamespaceTerminating, R::LetAllGo, P::Refused),
            (F::Forbidden, R::Refused, P::Refused),
            (F::Unavailable, R::Again, P::Again),
            (F::Unanswered, R::Prove, P::Again),
            (F::Silent, R::Prove, P::Again),
        ] {
            assert_eq!((for_record(failure), for_pod(failure)), (record, pod), "{failure:?}");
        }
    }
}
