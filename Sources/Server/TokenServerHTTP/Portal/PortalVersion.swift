// SPDX-License-Identifier: Apache-2.0

/// The version of the mobile authentication API and of the end-user API. Version 3 selects a device by application,
/// version 4 by device id; only version 4 distinguishes several devices of one user.
enum PortalVersion: String, CaseIterable, Sendable { case v3, v4 }
