//! The software bill of materials: an SPDX 2.3 document in JSON.

use super::crates::Crate;
use anyhow::{Context, Result};
use serde_json::{json, Value};

/// The document for a program that consists of `crates`.
pub(super) fn document(crates: &[Crate], created: &str) -> Result<String> {
    let tarsier = crates.iter().find(|found| found.name == "tarsier");
    let tarsier = tarsier.context("tarsier is not among its crates")?;
    let others = crates.iter().filter(|found| found.name != "tarsier");
    let contains = others.map(|found| relationship(&id(tarsier), "CONTAINS", &id(found)));
    let describes = relationship("SPDXRef-DOCUMENT", "DESCRIBES", &id(tarsier));
    let relationships: Vec<Value> = [describes].into_iter().chain(contains).collect();
    let name = format!("tarsier-{}", tarsier.version);
    let document = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": format!("https://spdx.org/spdxdocs/{name}-{created}"),
        "creationInfo": { "created": created, "creators": ["Tool: tarsier-xtask"] },
        "packages": crates.iter().map(package).collect::<Vec<_>>(),
        "relationships": relationships,
    });

    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn package(found: &Crate) -> Value {
    let mut package = json!({
        "SPDXID": id(found),
        "name": found.name,
        "versionInfo": found.version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": found.licence,
        "copyrightText": "NOASSERTION",
    });

    if let Some(sum) = &found.checksum {
        package["checksums"] = json!([{ "algorithm": "SHA256", "checksumValue": sum }]);
        package["externalRefs"] = json!([{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": format!("pkg:cargo/{}@{}", found.name, found.version),
        }]);
    }

    package
}

/// Identifiers have letters, digits, dots and dashes only (SPDX 2.3, 3.2).
fn id(found: &Crate) -> String {
    let text = format!("{}-{}", found.name, found.version);
    let legal = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    format!("SPDXRef-{}", text.chars().map(legal).collect::<String>())
}

fn relationship(from: &str, kind: &str, to: &str) -> Value {
    json!({
        "spdxElementId": from,
        "relationshipType": kind,
        "relatedSpdxElement": to,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_crate_is_a_package_with_an_id_of_its_own_and_a_relationship() {
        let root = crate::source_root();
        let crates = super::super::crates::of_tarsier(&root, "x86_64-unknown-linux-gnu").unwrap();
        let text = document(&crates, "2026-01-02T03:04:05Z").unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let ids = |list: &str, key: &str| -> BTreeSet<String> {
            let list = document[list].as_array().unwrap().iter();
            list.map(|each| each[key].as_str().unwrap().to_owned())
                .collect()
        };
        let packages = ids("packages", "SPDXID");
        assert_eq!(packages.len(), crates.len());
        assert_eq!(ids("relationships", "relatedSpdxElement"), packages);
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        assert!(
            packages.iter().all(|id| id.chars().all(legal)),
            "{packages:?}"
        );
        assert_eq!(document["creationInfo"]["created"], "2026-01-02T03:04:05Z");
    }
}
