//! `ctx config`.

use std::process::ExitCode;

use ctx_engine_registry::Config;

use crate::args::{self, Global};
use crate::models;
use crate::out::{GREEN, Out};
use crate::setup;

pub(crate) fn run(global: &Global, command: args::Config, out: &Out) -> anyhow::Result<ExitCode> {
    match command {
        args::Config::Show { profile, .. } => {
            let config = setup::config(global)?;
            let config = match profile {
                Some(profile) => config.with_profile(profile),
                None => config,
            };
            match config.path() {
                Some(path) => out.note(format!("from {}", path.display())),
                None => out.note("no configuration file; these are the defaults"),
            }
            out.json(&config.effective()?)?;
        }
        args::Config::Schema { .. } => out.json(&Config::schema())?,
        args::Config::Check { file, json } => {
            let config = match &file {
                Some(file) => Config::read(file)?,
                None => setup::config(global)?,
            };
            setup::check_engine(&config)?;
            let warnings = models::problems(&config)?;
            for warning in &warnings {
                out.warn(warning);
            }
            let path = config.path().map(|p| p.display().to_string());
            if json {
                out.json(&serde_json::json!({
                    "ok": true, "path": path, "profile": config.profile(), "warnings": warnings,
                }))?;
            } else {
                let path = path.unwrap_or_else(|| "defaults (there is no file)".to_owned());
                let path = crate::words::harmless(&path);
                out.line(format!("{GREEN}ok{GREEN:#} {path}, profile {}", config.profile()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
