//! S8: user edits win.

use crate::{
    history::Request,
    index::Index,
    rules::identity::broken,
    violation::{Rule, Violation},
};

/// S8. Writes that depend on what the object says name its version, and where they took effect that
/// was the version they met: an edit in between makes them fail.
pub(super) fn user_edits_win(index: &Index<'_>) -> Vec<Violation> {
    let dependent = index.history.requests.iter().filter(|request| depends_on_content(request));
    dependent
        .filter_map(|request| {
            let Some(version) = request.version else {
                return Some(broken(Rule::S8, request, "was to change in no particular version"));
            };
            let met = version_met(index, request).filter(|met| *met != version)?;
            let what = format!("was changed in version {met}, decided on in version {version}");
            Some(broken(Rule::S8, request, what))
        })
        .collect()
}

fn depends_on_content(request: &Request) -> bool {
    let changes = matches!(&*request.verb, "patch" | "update");
    match request.resource.as_str() {
        "trainjobs" => changes || request.verb == "delete",
        "jobsets" => changes,
        _ => false,
    }
}

/// The version that this request met when it took effect, as far as it is known.
fn version_met(index: &Index<'_>, request: &Request) -> Option<u64> {
    let made = request.answer.version.filter(|_| request.took_effect())?;
    let life = index.life(request.uid.as_deref()?)?;
    // One that changed nothing made no version.
    let made = life.version(made).filter(|made| Some(made.revision) != request.version)?;
    Some(life.before(made.revision)?.revision)
}
