//! `ctx engines add`.

use std::path::Path;
use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};
use ctx_engine_registry::find::{FileKind, Package};
use ctx_engine_registry::{EngineName, Registry, Trust};
use ctx_terminal::failure::misuse;
use ctx_terminal::format::{escaped, shortened};
use ctx_terminal::out::{BOLD, Cell, DIM, GREEN, Out, table};
use serde_json::json;

use super::place::Engines;
use crate::args::AddEngine;

pub(super) fn run(args: &AddEngine, out: &Out) -> anyhow::Result<ExitCode> {
    if let Some(name) = &args.name {
        EngineName::new(name).map_err(misuse)?;
    }
    let package = Package::read(&args.path, args.name.as_deref())?;
    let name = package.manifest.name.as_str();
    let registry = Registry::collect()?;
    if registry.engines().any(|engine| engine.id == name) {
        let error = Error::new(ErrorKind::Conflict, format!("'{name}' is a built-in engine"));
        return Err(error
            .hint("change the id in the engine's `hello`; --name must match that id")
            .into());
    }
    let trust = args.trust;
    if trust == Trust::InProcess && package.kind != FileKind::Library {
        let error = Error::new(ErrorKind::InvalidInput, "only a library can run inside ctx");
        return Err(misuse(error.with("path", package.path.display()).hint("omit --trust")));
    }
    let engines = Engines::of_user()?;
    if engines.has(name) && !args.force {
        let error = Error::new(ErrorKind::Conflict, format!("'{name}' is installed already"));
        let error = error.with("path", engines.of(name).display());
        return Err(error
            .hint("use --force to replace it, or set another id in the engine's `hello`")
            .into());
    }
    if !args.yes {
        out.note_table(&describe(&package, trust));
        out.ask(&format!("install '{name}'?"))?;
    }
    let draft = engines.draft()?;
    package.write_into(draft.path())?;
    let place = engines.publish(draft, name)?;
    check(&registry, name, &place, out)?;
    let config = snippet(name, trust);
    if args.json {
        out.json(&json!({
            "id": name,
            "version": package.manifest.version,
            "kind": package.kind,
            "path": place.display().to_string(),
            "sha256": package.sha256(),
            "config": config,
        }))?;
    } else {
        let place = escaped(&place.display().to_string());
        out.line(format!("{GREEN}installed{GREEN:#} {BOLD}{name}{BOLD:#} in {place}"))?;
        out.line(format!("{DIM}to use it, add to ctx.json5:{DIM:#}"))?;
        out.line(config)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes what is about to be installed, for the confirmation.
fn describe(package: &Package, trust: Trust) -> String {
    let manifest = &package.manifest;
    let kind = match package.kind {
        FileKind::Library => "a library",
        FileKind::Program => "a program",
        FileKind::Script => "a script",
    };
    let runs = match trust {
        Trust::Process => "in its own process, with your permissions",
        Trust::InProcess => "inside ctx: if it crashes, ctx crashes",
    };
    let from = if package.has_manifest { "its own" } else { "generated" };
    let mut rows = vec![
        ("engine", format!("{} {}", manifest.name, manifest.version)),
        ("about", manifest.about.clone()),
        ("license", manifest.license.clone()),
        ("file", package.path.display().to_string()),
        ("kind", kind.to_owned()),
        ("sha256", package.sha256()),
        ("manifest", from.to_owned()),
        ("runs", runs.to_owned()),
    ];
    if let Ok(file) = manifest.file()
        && let Some(interpreter) = &file.interpreter
    {
        rows.push(("interpreter", format!("{interpreter} {}", file.args.join(" "))));
    }
    rows.retain(|(_, value)| !value.is_empty());
    let rows = rows.into_iter().map(|(what, value)| Vec::<Cell>::from([what.into(), value.into()]));
    table(&[], rows.collect(), 0)
}

/// Checks that a search for the name finds the installed engine; warns if it finds another one.
fn check(registry: &Registry, name: &str, place: &Path, out: &Out) -> anyhow::Result<()> {
    let (found, trace) = registry.search().find_traced(name);
    let decided = trace.steps.last().map(|step| step.path.as_path());
    if let Some(other) = decided.filter(|path| !path.starts_with(place)) {
        let other = shortened(&other.display().to_string(), 160);
        out.warn(format!(
            "another '{name}' takes precedence: {other}; `ctx engines --trace` shows why"
        ));
        return Ok(());
    }
    found?;
    Ok(())
}

/// Returns the lines of a configuration that selects the engine. ctx does not edit the file.
fn snippet(name: &str, trust: Trust) -> String {
    let engines = match trust {
        Trust::Process => String::new(),
        Trust::InProcess => format!(", engines: {{ \"{name}\": {{ trust: \"in-process\" }} }}"),
    };
    format!("plugins: {{ slots: {{ contextEngine: \"{name}\" }}{engines} }}")
}
