// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// The benchmarks of docs/benchmarks.md; run them with scripts/bench. A separate package, so that a build of the product
// does not build them.
import PackageDescription

let package = Package(
  name: "benchmarks",
  dependencies: [
    .package(name: "approval-token", path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    .systemLibrary(name: "CBench", providers: [.apt(["libssl-dev"])]),
    .executableTarget(
      name: "bench",
      dependencies: [
        "CBench",
        .product(name: "ReferenceProtocol", package: "approval-token"),
        .product(name: "PINEntry", package: "approval-token"),
        .product(name: "Hardware", package: "approval-token"),
        .product(name: "TestAM", package: "approval-token"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
      ]),
    // The reference programs for the panel, in the bench kernel.
    .executableTarget(name: "reference-gpio", linkerSettings: [.linkedLibrary("gpiod")]),
    .executableTarget(name: "reference-usb", linkerSettings: [.linkedLibrary("usb-1.0")]),
    .executableTarget(
      name: "timing",
      dependencies: [
        .product(name: "PINEntry", package: "approval-token"),
        .product(name: "ApprovalTestKit", package: "approval-token"),
      ],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
