# The R side of `python -m benchmarks.mgcv_table`: writes tables of R's packages, and fits all tables.
#
#     Rscript benchmarks/mgcv.R tables FOLDER    writes quine.csv, mcycle.csv, … into the folder
#     Rscript benchmarks/mgcv.R fits FOLDER NAME …  fits these tables with mgcv, and writes
#                                                NAME.statistics.csv and NAME.predictions.csv
suppressMessages({library(mgcv); library(MASS); library(survival)})
#     Rscript benchmarks/mgcv.R times FOLDER     writes times.csv, of bam for long_NAME.csv
options(digits = 17)

arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[2]
in_folder <- function(name) file.path(folder, name)

# Rows of tables of R, with the response as `y`.
r_tables <- function() {
  gamma_rows <- na.omit(pbc[, c("bili", "age", "albumin", "protime", "platelet")])
  claims <- Insurance[, c("District", "Group", "Age", "Holders", "Claims")]
  smoking <- transform(esoph, trials = ncases + ncontrols)
  flats <- housing[rep(seq_len(nrow(housing)), housing$Freq), c("Infl", "Type", "Cont", "Sat")]
  flats$Sat <- as.integer(flats$Sat)
  deaths <- na.omit(pbc[!is.na(pbc$trt), c("time", "status", "age", "bili", "albumin", "protime")])
  deaths <- transform(deaths, event = as.integer(status == 2), status = NULL)
  species <- data.frame(Sepal.Width = iris$Sepal.Width, y = as.integer(iris$Species) - 1)
  rename <- function(table, response) {
    names(table)[names(table) == response] <- "y"
    table
  }
  list(
    quine = rename(quine, "Days"), mcycle = rename(mcycle, "accel"),
    pbc_bilirubin = rename(gamma_rows, "bili"), insurance = rename(claims, "Claims"),
    esoph = rename(smoking[, c("agegp", "alcgp", "tobgp", "ncases", "trials")], "ncases"),
    housing = rename(flats, "Sat"), housing_classes = transform(rename(flats, "Sat"), y = y - 1),
    iris = species, mcycle_scale = rename(mcycle, "accel"), pbc_survival = rename(deaths, "time")
  )
}

smooth <- "s(x0, k = 20) + s(x1, k = 20) + s(x2, k = 20)"
effects <- function(...) paste0("s(", c(...), ", bs = 're')", collapse = " + ")
# Formula (those of all linear predictors) and family of each table; a new table is one line here,
# and one in mgcv_table.py.
models <- list(
  normal = list(paste("y ~", smooth), quote(gaussian())),
  poisson = list(paste("y ~", smooth), quote(quasipoisson())),
  gamma = list(paste("y ~", smooth), quote(Gamma(link = "log"))),
  negative_binomial = list(paste("y ~", smooth), quote(nb())),
  tweedie = list(paste("y ~", smooth), quote(tw())),
  binomial = list(paste("cbind(y, trials - y) ~", smooth), quote(binomial())),
  beta = list(paste("y ~", smooth), quote(betar())),
  ordinal = list(paste("y ~", smooth), quote(ocat(R = 4))),
  quine = list(paste("y ~", effects("Eth", "Sex", "Age", "Lrn")), quote(nb())),
  mcycle = list("y ~ s(times, k = 20)", quote(gaussian())),
  pbc_bilirubin = list("y ~ s(age) + s(albumin) + s(protime) + s(platelet)",
                       quote(Gamma(link = "log"))),
  insurance = list(paste("y ~ offset(log(Holders)) +", effects("District", "Group", "Age")),
                   quote(nb())),
  esoph = list(paste("cbind(y, trials - y) ~", effects("agegp", "alcgp", "tobgp")),
               quote(binomial())),
  housing = list(paste("y ~", effects("Infl", "Type", "Cont")), quote(ocat(R = 3))),
  housing_classes = list(c(paste("y ~", effects("Infl", "Type", "Cont")),
                           paste("~", effects("Infl", "Type", "Cont"))), quote(multinom(K = 2))),
  multinomial = list(paste(c("y ~", "~"), smooth), quote(multinom(K = 2))),
  iris = list(c("y ~ s(Sepal.Width)", "~ s(Sepal.Width)"), quote(multinom(K = 2))),
  location_scale = list(paste(c("y ~", "~"), smooth), quote(gaulss())),
  mcycle_scale = list(c("y ~ s(times, k = 20)", "~ s(times)"), quote(gaulss())),
  cox = list(paste("y ~", smooth), quote(cox.ph())),
  pbc_survival = list("y ~ s(age) + s(bili) + s(albumin) + s(protime)", quote(cox.ph()))
)

fit <- function(name) {
  rows <- read.csv(in_folder(paste0(name, ".csv")), stringsAsFactors = TRUE)
  model <- models[[name]]
  # Of survival models, whether the time ended with an event.
  prior <- if (is.null(rows$event)) rep(1, nrow(rows)) else rows$event
  started <- proc.time()
  formulas <- lapply(model[[1]], as.formula, env = environment())
  if (length(formulas) == 1) formulas <- formulas[[1]]
  fitted <- gam(formulas, data = rows, family = eval(model[[2]]), method = "REML",
                weights = prior)
  seconds <- sum((proc.time() - started)[1:2])
  parameters <- if (is.null(fitted$family$getTheta)) numeric(0) else fitted$family$getTheta(TRUE)
  terms <- summary(fitted)$s.table
  statistics <- rbind(
    data.frame(kind = "edf", value = sum(fitted$edf)),
    data.frame(kind = "deviance explained", value = summary(fitted)$dev.expl),
    data.frame(kind = "seconds", value = seconds),
    data.frame(kind = rep("parameter", length(parameters)), value = parameters),
    data.frame(kind = paste("p", gsub("^s(\\.1)?\\((.*)\\)$", "\\2\\1", rownames(terms))),
               value = terms[, ncol(terms)])
  )
  write.csv(statistics, in_folder(paste0(name, ".statistics.csv")), row.names = FALSE)
  type <- if (is.null(rows$event)) "response" else "link"
  predicted <- predict(fitted, type = type)
  if (fitted$family$family == "gaulss") predicted[, 2] <- 1 / predicted[, 2]  # σ
  write.csv(predicted, in_folder(paste0(name, ".predictions.csv")),
            row.names = FALSE)
}

if (arguments[1] == "times") {
  seconds <- c()
  for (name in c("negative_binomial", "tweedie")) {
    rows <- read.csv(in_folder(paste0("long_", name, ".csv")))
    terms <- paste0("s(x", 0:9, ")", collapse = " + ")
    started <- proc.time()
    bam(as.formula(paste("y ~", terms)), data = rows, family = eval(models[[name]][[2]]),
        discrete = TRUE)
    seconds[name] <- sum((proc.time() - started)[1:2])
  }
  write.csv(data.frame(table = names(seconds), seconds = seconds), in_folder("times.csv"),
            row.names = FALSE)
} else if (arguments[1] == "tables") {
  tables <- r_tables()
  for (name in names(tables))
    write.csv(tables[[name]], in_folder(paste0(name, ".csv")), row.names = FALSE)
} else {
  for (name in arguments[-(1:2)]) fit(name)
  versions <- c(R = as.character(getRversion()), mgcv = as.character(packageVersion("mgcv")))
  write.csv(data.frame(of = names(versions), value = versions), in_folder("versions.csv"),
            row.names = FALSE)
}
