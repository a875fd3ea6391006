//! Why a stored policy is not understood.

use crate::policy::PolicyError;

/// Why a stored policy is not understood. The text names the field and says what it should say.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The text is not an object with metadata.
    #[error("not a policy: {0}")]
    Object(#[source] serde_json::Error),
    /// A field or a value is not of this version of the API.
    #[error("{field}: {source}")]
    Unknown {
        /// The path of the field, or of the one that it is in.
        field: String,
        /// What was expected there.
        source: serde_json::Error,
    },
    /// It is another spec than the status is about, and nobody has edited it: the API server leaves out fields that its
    /// definition of policies does not have.
    #[error(
        "spec: nobody has edited it since generation {generation} was read, and it is another one now, so the API server's \
         definition of policies must have changed; install the definition of this version and apply the policy again, or \
         edit it if it is right as it is"
    )]
    ChangedByDefinition {
        /// `metadata.generation`.
        generation: i64,
    },
    /// The values of fields are listed without the names of the fields.
    #[error("{0} is a list, expected fields with names")]
    List(String),
    /// A field says nothing. To read it as if it were absent could delete what it was meant to keep.
    #[error("{0} is null or empty: leave it out, or give it a value")]
    Nothing(String),
    /// The fields are known, and what they say is not allowed.
    #[error("{field}: {source}")]
    Invalid {
        /// The path of the field.
        field: String,
        /// What is wrong with it.
        source: PolicyError,
    },
}

/// Says of which field an error is.
pub(super) trait At<T> {
    /// The value, or the error of the field with this path.
    fn at(self, field: &str) -> Result<T, StoredError>;
}

impl<T, E: Into<PolicyError>> At<T> for Result<T, E> {
    fn at(self, field: &str) -> Result<T, StoredError> {
        self.map_err(|error| StoredError::Invalid { field: field.to_owned(), source: error.into() })
    }
}
