//! What is asked of an object, and the object itself.
//!
//! What cannot change what runs is told by its text: an update that leaves the spec as it is, one of an object that is
//! being deleted, and whatever is neither a creation nor an update. (The webhook configurations keep most of that from
//! being asked at all.)

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Error;
use trainjob_api::TrainJob;
use validator::{Validate, ValidationErrors};

use crate::{
    dropped::{DEADLINE, TTL},
    fields::Object,
    review::Request,
};

pub(crate) const RUNTIME_REF: &str = "runtimeRef";
/// A field of the metadata that no rule depends on. It alone can have thousands of parts, and it may grow while the spec
/// stays as it is, which is not judged; so an object is readable whatever it holds.
const OWNER_REFERENCES: &str = "ownerReferences";
/// Fields of a TrainJob's spec that no rule about any other field depends on.
const LIGHT: [&str; 3] = ["suspend", DEADLINE, TTL];

/// Objects longer than so many bytes may have longer lists than the schema admits, and take long to judge.
const LARGE: usize = 64 * 1024;

/// What is asked of an object whose answer is not plain.
pub(crate) enum Change<'a> {
    Create(&'a Object<'a>),
    Update { old: &'a Object<'a>, new: &'a Object<'a> },
}

impl<'a> Change<'a> {
    /// The object as it is to be.
    pub(crate) const fn requested(&self) -> &Object<'a> {
        match self {
            Self::Create(new) | Self::Update { new, .. } => new,
        }
    }

    fn is_large(&self) -> bool {
        match self {
            Self::Create(new) => new.len() > LARGE,
            Self::Update { old, new } => old.len() > LARGE || new.len() > LARGE,
        }
    }

    /// Why a large job is more than the schema admits, unless it was before. Lists that are longer than
    /// that could take long to judge.
    pub(crate) fn beyond_the_schema(
        &self,
        old: Option<&Result<TrainJob, String>>,
        job: &TrainJob,
    ) -> Option<ValidationErrors> {
        if !self.is_large() {
            return None;
        }
        let problem = job.spec.validate().err()?;
        let was_so = matches!(old, Some(Ok(old)) if old.spec.validate().is_err());
        (!was_so).then_some(problem)
    }
}

/// What is asked; `None` if the answer is yes whatever the object.
pub(crate) fn change<'a>(request: &'a Request<'_>) -> Result<Option<Change<'a>>, String> {
    let needed = |object: &'a Option<Object<'_>>, name: &str| {
        object.as_ref().ok_or_else(|| format!("request.{name}: Required value"))
    };
    match &*request.operation {
        "CREATE" => Ok(Some(Change::Create(needed(&request.object, "object")?))),
        "UPDATE" => {
            let new = needed(&request.object, "object")?;
            let old = needed(&request.old_object, "oldObject")?;
            Ok((!is_let_through(old, new)).then_some(Change::Update { old, new }))
        }
        _ => Ok(None),
    }
}

/// Whether an update is one of an object that is being deleted, or leaves its spec as it is.
fn is_let_through(old: &Object<'_>, new: &Object<'_>) -> bool {
    new.is_going()
        || match (&old.spec, &new.spec) {
            (Some(old), Some(new)) => old.equals(new, &[]),
            (None, None) => true,
            _ => false,
        }
}

/// Why an object is of no use.
pub(crate) enum DecodeError {
    /// It has no spec.
    NoSpec,
    /// It is not of its kind.
    Unreadable(String),
}

/// The object as it is, which may be one that cannot be read, and as it is to be.
pub(crate) type Objects<K> = (Option<Result<K, String>>, K);

pub(crate) fn objects<K>(
    change: &Change<'_>,
    read: impl Fn(&Object<'_>) -> Result<K, DecodeError>,
) -> Result<Objects<K>, DecodeError> {
    let (old, new) = match change {
        Change::Create(new) => (None, *new),
        Change::Update { old, new } => (Some(*old), *new),
    };
    let new = read(new).map_err(|unfit| match unfit {
        DecodeError::NoSpec => DecodeError::NoSpec,
        DecodeError::Unreadable(problem) => {
            DecodeError::Unreadable(format!("request.object: {problem}"))
        }
    })?;
    let old = match old.map(read) {
        // What there was said nothing, so all of it is new.
        None | Some(Err(DecodeError::NoSpec)) => None,
        Some(Ok(old)) => Some(Ok(old)),
        Some(Err(DecodeError::Unreadable(problem))) => Some(Err(problem)),
    };
    Ok((old, new))
}

/// The TrainJobs, without what is the same in both where nothing depends on it.
pub(crate) fn train_jobs(change: &Change<'_>) -> Result<Objects<TrainJob>, DecodeError> {
    let is_about_light_fields = match change {
        Change::Update {
            old: Object { spec: Some(old), .. },
            new: Object { spec: Some(new), .. },
        } => old.equals(new, &LIGHT),
        _ => false,
    };
    if is_about_light_fields { light_train_jobs(change) } else { train_jobs_of(change, |_| true) }
}

/// The TrainJobs as far as their light fields. These can be read where the rest of a stored job cannot.
pub(crate) fn light_train_jobs(change: &Change<'_>) -> Result<Objects<TrainJob>, DecodeError> {
    train_jobs_of(change, |name| name == RUNTIME_REF || LIGHT.contains(&name))
}

fn train_jobs_of(
    change: &Change<'_>,
    keep: impl Fn(&str) -> bool,
) -> Result<Objects<TrainJob>, DecodeError> {
    objects(change, |object| {
        let (metadata, spec) = read(object, &keep)?;
        Ok(TrainJob { metadata, spec, status: None })
    })
}

/// Metadata, as far as rules depend on it, and spec of an object.
pub(crate) fn read<S: DeserializeOwned>(
    object: &Object<'_>,
    keep: impl Fn(&str) -> bool,
) -> Result<(ObjectMeta, S), DecodeError> {
    let unreadable =
        |part: &str, problem: Error| DecodeError::Unreadable(format!("{part}: {problem}"));
    let spec = object.spec.as_ref().ok_or(DecodeError::NoSpec)?;
    let spec = spec.read(keep).map_err(|problem| unreadable("spec", problem))?;
    let metadata = match &object.metadata {
        Some(metadata) => metadata.read(|name| name != OWNER_REFERENCES),
        None => Ok(ObjectMeta::default()),
    };
    Ok((metadata.map_err(|problem| unreadable("metadata", problem))?, spec))
}
