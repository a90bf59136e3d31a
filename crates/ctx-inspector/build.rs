//! Compresses the files of `assets`: they are a third of their size in the program then.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    let mut texts = BTreeMap::new();
    for folder in ["", "inspector/", "parts/"] {
        let path = format!("assets/{folder}");
        println!("cargo::rerun-if-changed={path}");
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            if let (Some(name), true) = (path.file_name(), path.is_file()) {
                println!("cargo::rerun-if-changed={}", path.display());
                texts.insert(format!("{folder}{}", name.display()), fs::read_to_string(&path)?);
            }
        }
    }
    let out = Path::new(&env::var("OUT_DIR")?).join("assets");
    let mut packed = DeflateEncoder::new(File::create(out)?, Compression::best());
    serde_json::to_writer(&mut packed, &texts)?;
    packed.finish()?;
    Ok(())
}
