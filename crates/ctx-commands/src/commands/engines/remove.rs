//! `ctx engines remove`.

use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};
use ctx_engine_registry::find::{FolderKind, Search};
use ctx_engine_registry::{EngineName, Registry};
use ctx_terminal::failure::misuse;
use ctx_terminal::format::escaped;
use ctx_terminal::out::{GREEN, Out};

use super::place::Engines;
use crate::args::{Global, RemoveEngine};
use crate::{engine_health, setup};

pub(super) fn run(global: &Global, args: &RemoveEngine, out: &Out) -> anyhow::Result<ExitCode> {
    let name = EngineName::new(&args.name).map_err(misuse)?;
    let name = name.as_str();
    let engines = Engines::of_user()?;
    if !engines.has(name) {
        return Err(not_ours(name).into());
    }
    let place = engines.of(name);
    let shown = escaped(&place.display().to_string());
    if !args.yes {
        out.ask(&format!("remove '{name}': {} with everything in it?", place.display()))?;
    }
    engines.remove(name)?;
    engine_health::forget(name);
    // An engine can be removed even if the configuration is unreadable.
    let named = setup::config(global).and_then(|c| Ok(ctx_engine_registry::named_engines(&c)?));
    for (key, _) in named.unwrap_or_default().iter().filter(|(_, id)| id == name) {
        out.warn(format!("{key} still names '{name}'"));
    }
    let report = serde_json::json!({ "id": name, "path": place });
    out.report(args.json, &report, |_, out| {
        Ok(out.line(format!("{GREEN}removed{GREEN:#} {shown}"))?)
    })
}

/// Returns the error for an engine that was not installed by ctx.
fn not_ours(name: &str) -> Error {
    let linked = Registry::collect().is_ok_and(|r| r.engines().any(|engine| engine.id == name));
    if linked {
        return Error::new(ErrorKind::InvalidInput, format!("'{name}' is part of this build"))
            .hint("to use another, set plugins.slots.contextEngine");
    }
    let listed = Search::from_env().list().engines;
    match listed.into_iter().find(|engine| engine.name.as_str() == name) {
        Some(engine) => {
            let said = match engine.place {
                FolderKind::User => "was not installed by `ctx engines add`",
                FolderKind::Variable | FolderKind::System => "is not in one of your own folders",
            };
            Error::new(ErrorKind::InvalidInput, format!("'{name}' {said}"))
                .with("path", engine.manifest_path.display())
                .hint("delete its manifest and its file yourself")
        }
        None => Error::new(ErrorKind::NotFound, format!("no engine '{name}' is installed"))
            .hint("`ctx engines` lists them"),
    }
}
