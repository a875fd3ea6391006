//! The finalizer that earlier versions of Kubeflow Trainer put on runtimes in use.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use trainjob_api::constants::LEGACY_FINALIZER;

/// The finalizers that a runtime keeps; `None` if it has not got the legacy one, and keeps all.
#[must_use]
pub fn without_legacy_finalizer(runtime: &ObjectMeta) -> Option<Vec<String>> {
    let all = runtime.finalizers.as_deref().unwrap_or_default();
    let kept: Vec<_> = all.iter().filter(|it| *it != LEGACY_FINALIZER).cloned().collect();
    (kept.len() < all.len()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_legacy_finalizer_goes() {
        for (finalizers, expected) in [
            (None, None),
            (Some(vec![]), None),
            (Some(vec!["other"]), None),
            (Some(vec![LEGACY_FINALIZER]), Some(vec![])),
            (Some(vec!["a", LEGACY_FINALIZER, "b"]), Some(vec!["a", "b"])),
        ] {
            let texts = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
            let metadata =
                ObjectMeta { finalizers: finalizers.map(texts), ..ObjectMeta::default() };
            assert_eq!(without_legacy_finalizer(&metadata), expected.map(texts), "{metadata:?}");
        }
    }
}
